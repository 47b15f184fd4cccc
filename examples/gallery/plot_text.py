"""
Sentences of three books
========================

Text as sparse rows, a column per word, which are never filled. ``metric="cosine"`` lets
the length of a sentence be of no account. The sentences, of a constitution, of Alice
and of a whale, are in ``examples/text.py``.
"""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, plot

# the site runs programs in their folder and gives them no __file__
here = Path(globals().get("__file__", "plot_text.py")).absolute()
text = runpy.run_path(str(here.parents[1] / "text.py"))
sentences, book = text["sentences"]()
vectorizer = TfidfVectorizer(sublinear_tf=True)
X = vectorizer.fit_transform(sentences)
model = CDSK(3, metric="cosine", random_state=0).fit(X)
print(f"{X.shape[0]} sentences of {X.shape[1]} words, {X.nnz} numbers in all")
print(
    f"adjusted Rand index with the books {adjusted_rand_score(book, model.labels_):.2f}"
)

# %%
# New sentences have probabilities, and the least certain of the old ones can be looked
# at.

new = ["The Rabbit said to Alice.", "The Senate shall choose a whale."]
for line, shares in zip(
    new, model.predict_proba(vectorizer.transform(new)), strict=True
):
    print(f"{line:35s}", " ".join(f"{share:.2f}" for share in shares))
print("Least certain:", sentences[model.probabilities_.argmin()])

# %%
# Left, the sentences in the embedding, a corner of the triangle for each cluster.
# Right, the words that a cluster has more of than the others.

words = vectorizer.get_feature_names_out()
figure = plt.figure(figsize=(10, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.3))
plot.embedding(model, ax=left.subplots(), title="Embedding")
for k, ax in enumerate(right.subplots(1, 3)):
    members = model.labels_ == k
    lead = np.ravel(X[members].mean(axis=0) - X[~members].mean(axis=0))
    top = np.argsort(lead)[-10:]
    title = list(text["BOOKS"])[np.bincount(book[members]).argmax()]
    ax.barh(words[top], lead[top], color=("#0072B2", "#E69F00", "#009E73")[k])
    ax.set_title(f"cluster {k}\nmostly {title}", fontsize=10)
    ax.set_xticks([])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
plt.show()
