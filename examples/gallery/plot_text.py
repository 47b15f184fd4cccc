"""
Sentences from three books
==========================

Texts are sparse rows with one column per word, and stay sparse in the fit. With
``metric="cosine"`` the length of a sentence does not matter. The sentences are from the
Constitution of the United States, from
Alice in Wonderland and from Moby-Dick (``examples/text.py``).
"""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, plot

# the documentation build runs programs without __file__
here = Path(globals().get("__file__", "plot_text.py")).absolute()
text = runpy.run_path(str(here.parents[1] / "text.py"))
sentences, book = text["load_sentences"]()
vectorizer = TfidfVectorizer(sublinear_tf=True)
X = vectorizer.fit_transform(sentences)
model = CDSK(3, metric="cosine", random_state=0).fit(X)
print(f"{X.shape[0]} sentences, {X.shape[1]} words, {X.nnz} nonzero entries")
print(f"adjusted Rand index {adjusted_rand_score(book, model.labels_):.2f}")

# %%
# Probabilities of new sentences, and the least certain training sentences.

new = ["The Rabbit said to Alice.", "The Senate shall choose a whale."]
probabilities = model.predict_proba(vectorizer.transform(new))
for line, row in zip(new, probabilities, strict=True):
    print(f"{line:35s}", " ".join(f"{probability:.2f}" for probability in row))
print("Lowest probability:", sentences[model.probabilities_.argmin()])

# %%
# Left: the sentences in the embedding, with a corner of the triangle for each cluster.
# Right: the words that are more frequent in a cluster than in the others.

words = vectorizer.get_feature_names_out()
figure = plt.figure(figsize=(10, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.3))
plot.embedding(model, ax=left.subplots(), title="Embedding")
for k, ax in enumerate(right.subplots(1, 3)):
    members = model.labels_ == k
    difference = np.ravel(X[members].mean(axis=0) - X[~members].mean(axis=0))
    top = np.argsort(difference)[-10:]
    title = list(text["BOOKS"])[np.bincount(book[members]).argmax()]
    ax.barh(words[top], difference[top], color=("#0072B2", "#E69F00", "#009E73")[k])
    ax.set_title(f"cluster {k}\nmostly {title}", fontsize=10)
    ax.set_xticks([])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
plt.show()
