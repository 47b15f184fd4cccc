"""
Two moons in noise
==================

Two half circles of 300 points each among 60 points scattered evenly over the picture.
k-means cuts straight through. Spectral clustering, with a bandwidth that suits the
moons, cuts off a few scattered points instead, for that is the cheapest cut. CDSK
learns a weight for every point: scattered ones lose theirs, and the cut falls between
the moons.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from cdsk import CDSK, plot

moons, truth = make_moons(600, noise=0.07, random_state=0)
scattered = np.random.default_rng(0).uniform((-1.5, -1.0), (2.5, 1.5), (60, 2))
X = np.concatenate([moons, scattered])

# %%
# Half the mean distance to the 7th neighbour is the bandwidth of the rival; CDSK finds
# its own scale. With ``noise`` it labels points -1 that are too far from all others,
# here at a rate of false alarms of one in a hundred.

half_seventh = (
    0.5 * NearestNeighbors(n_neighbors=7).fit(X).kneighbors()[0][:, -1].mean()
)
models = {
    "k-means": KMeans(2, random_state=0),
    "SpectralClustering": SpectralClustering(
        2, gamma=0.5 / half_seventh**2, random_state=0
    ),
    "CDSK": CDSK(2, random_state=0),
    "CDSK, noise=0.01": CDSK(2, noise=0.01, random_state=0),
}
for name, model in models.items():
    model.fit(X)
    score = adjusted_rand_score(truth, model.labels_[: len(truth)])
    print(f"{name:20s} adjusted Rand index of the moons {score:.2f}")

# %%
# Points are sized and shaded by their learned weight, hollow ones carry none, grey ones
# are noise. The lines are where ``predict`` changes its mind.

figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    plot.scatter(model, X, ax=ax, title=name, boundaries=isinstance(model, CDSK))
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
    ax.spines[:].set_visible(False)
plt.show()
