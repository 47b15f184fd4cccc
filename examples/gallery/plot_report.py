"""
The report of a fitted model
============================

178 wines with 13 chemical measurements in different units. ``report`` describes which
options were selected and why, which points are typical and which are outliers, and
lists warnings. ``plot.overview`` plots the same.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, plot

X, cultivar = load_wine(return_X_y=True, as_frame=True)
model = CDSK(n_clusters=3, random_state=0).fit(X)
print(model.report())

# %%
# The view of the data was chosen without labels. The known classes confirm it:

score = adjusted_rand_score(cultivar, model.labels_)
print(
    f"{model.representation_.view}; adjusted Rand index with the cultivars {score:.2f}"
)

# %%
# A notebook shows the report as an interactive page, as here: hover over a point, click
# a cluster. ``model.report(X).to_html("report.html")`` writes it to a file.

model.report(X)

# %%
# Points and embedding show the clusters, the similarity shows the blocks that were cut.
# Wines with a margin below 1 are between two clusters. The scores of views and kernels
# explain the choice; 1 minus an eigenvalue is the cost of a cluster in the relaxed cut.
# ``plot.overview(model, X)`` makes this figure in one call.

plt.rcParams["font.size"] = 9
figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
plot.scatter(model, X, ax=axes[0, 0], title="Points")
plot.embedding(model, ax=axes[0, 1], title="Embedding")
plot.similarity(model, X, ax=axes[0, 2], title="Similarity")
plot.margins(model, ax=axes[1, 0], title="Margins")
plot.choice(model, ax=axes[1, 1], title="Model selection")
plot.eigenvalues(model, ax=axes[1, 2], title="Eigenvalues")
plt.show()
