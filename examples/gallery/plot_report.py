"""
What a fitted model tells of itself
===================================

178 wines by 13 chemical measurements in different units. ``report`` says in words what
was chosen and why, which points are typical, which are outliers, and what to be wary
of; ``plot.overview`` draws it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, plot

X, cultivar = load_wine(return_X_y=True, as_frame=True)
model = CDSK(n_clusters=3, random_state=0).fit(X)
print(model.report())

# %%
# Which view of the data served best was decided without labels. They agree with it:

score = adjusted_rand_score(cultivar, model.labels_)
print(
    f"{model.representation_.view}; adjusted Rand index with the cultivars {score:.2f}"
)

# %%
# A notebook, and this page, shows the report as a page of its own: point at the points,
# click on a cluster. ``model.report(X).to_html("report.html")`` writes it to a file.

model.report(X)

# %%
# Points and embedding show the clusters, and the blocks of the similarity what the cut
# was made by. Bars of the margins that fall short of 1 are wines between two clusters.
# The choice of view and kernel comes with its scores; 1 less an eigenvalue is what that
# cluster costs the cut. ``plot.overview(model, X)`` makes this figure in one call.

plt.rcParams["font.size"] = 9
figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
plot.scatter(model, X, ax=axes[0, 0], title="Points")
plot.embedding(model, ax=axes[0, 1], title="Embedding")
plot.similarity(model, X, ax=axes[0, 2], title="Similarity")
plot.margins(model, ax=axes[1, 0], title="Margins")
plot.choice(model, ax=axes[1, 1], title="Choice of view and kernel")
plot.eigenvalues(model, ax=axes[1, 2], title="Eigenvalues")
plt.show()
