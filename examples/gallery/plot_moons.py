"""
Two moons in noise
==================

Two half circles of 300 points each, and 60 points of uniform noise. k-means cuts
straight through the moons. Spectral clustering, with a bandwidth that suits the moons,
cuts off a few noise points, because that is the cheapest cut. CDSK learns a weight for
every point: noise loses its weight, and the cut falls between the moons.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from cdsk import CDSK, plot

moons, truth = make_moons(600, noise=0.07, random_state=0)
noise = np.random.default_rng(0).uniform((-1.5, -1.0), (2.5, 1.5), (60, 2))
X = np.concatenate([moons, noise])

# %%
# The bandwidth of spectral clustering is half the mean distance to the 7th neighbor;
# CDSK chooses its own. With ``noise`` it labels points -1 that are too far from all
# others, here at a false positive rate of one percent.

distances, _ = NearestNeighbors(n_neighbors=7).fit(X).kneighbors()
bandwidth = 0.5 * distances[:, -1].mean()
models = {
    "k-means": KMeans(2, random_state=0),
    "SpectralClustering": SpectralClustering(
        2, gamma=0.5 / bandwidth**2, random_state=0
    ),
    "CDSK": CDSK(2, random_state=0),
    "CDSK, noise=0.01": CDSK(2, noise=0.01, random_state=0),
}
for name, model in models.items():
    model.fit(X)
    score = adjusted_rand_score(truth, model.labels_[: len(truth)])
    print(f"{name:20s} adjusted Rand index of the moons {score:.2f}")

# %%
# Points are sized and shaded by their learned weight; hollow points have none, gray
# points are noise. The lines are the decision boundary of ``predict``.

figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    plot.scatter(model, X, ax=ax, title=name, boundaries=isinstance(model, CDSK))
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
    ax.spines[:].set_visible(False)
plt.show()
