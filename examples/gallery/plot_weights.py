"""
Effect of the weights
=====================

Three blobs that touch, and outliers around them. ``max_iter=0`` keeps uniform weights,
which is plain spectral clustering with the same kernel. ``lam`` is the smallest
fraction of points with positive weight: a smaller ``lam`` gives sparser weights,
further inside the clusters.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, plot

blobs, truth = make_blobs(
    450, centers=[[0, 0], [4.2, 0.5], [1.8, 3.8]], cluster_std=0.95, random_state=3
)
outliers = np.random.default_rng(3).uniform(-6, 10, (45, 2))
X = np.concatenate([blobs, outliers])

# %%
# All fits have the same kernel and bandwidth, so only the weights differ.

settings = {"uniform weights": {"max_iter": 0}}
settings |= {f"lam={lam}": {"lam": lam} for lam in (0.3, 0.2, 0.05)}
models = {}
for name, setting in settings.items():
    model = CDSK(3, bandwidth="neighbor", random_state=0, **setting)
    with warnings.catch_warnings():  # outliers without any similarity
        warnings.simplefilter("ignore", UserWarning)
        models[name] = model.fit(X)
    score = adjusted_rand_score(truth, model.labels_[: len(truth)])
    print(
        f"{name:16s} {len(model.support_):3d} of {len(X)} points have positive weight, "
        f"adjusted Rand index {score:.2f}"
    )

# %%
# With uniform weights the cheapest cuts isolate outliers. Learned weights exclude them,
# and the cuts separate the blobs.

figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    plot.scatter(model, X, ax=ax, title=f"{name}: {len(model.support_)} points")
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
    ax.spines[:].set_visible(False)
plt.show()
