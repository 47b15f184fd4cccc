"""
Baselines of the paper
======================

``cdsk.baselines`` contains the methods that the paper compares CDSK with, as
estimators. No method is best for all data: some are made for subspaces, some for curved
clusters, some for round ones. This example runs them on five small data sets with their
defaults.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_wine, make_blobs, make_moons
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import scale

from cdsk import CDSK, baselines

# %%
# Two moons; three blobs that touch; points on four planes through the origin in ten
# dimensions; 13 measurements of wines; and 200 handwritten digits.

rng = np.random.default_rng(0)
planes = [rng.normal(size=(50, 2)) @ rng.normal(size=(2, 10)) for _ in range(4)]
wine, digits = load_wine(return_X_y=True), load_digits(return_X_y=True)
sets = {
    "moons": make_moons(300, noise=0.1, random_state=0),
    "blobs": make_blobs(200, centers=3, cluster_std=1.3, random_state=5),
    "planes": (np.concatenate(planes), np.repeat(np.arange(4), 50)),
    "wine": (scale(wine[0]), wine[1]),
    "digits": (digits[0][:200], digits[1][:200]),
}

# %%
# All classes of ``cdsk.baselines``.

methods = {
    name: getattr(baselines, name) for name in baselines.__all__ if name[0].isupper()
}
methods["CDSK"] = CDSK
scores = np.empty((len(methods), len(sets)))
for j, (X, y) in enumerate(sets.values()):
    for i, method in enumerate(methods.values()):
        model = method(n_clusters=len(np.unique(y)), random_state=0)
        with warnings.catch_warnings():  # disconnected graphs
            warnings.simplefilter("ignore", UserWarning)
            scores[i, j] = normalized_mutual_info_score(y, model.fit_predict(X))
order = np.argsort(-scores.mean(axis=1), kind="stable")
for i in order:
    print(f"{list(methods)[i]:22s} mean NMI {scores[i].mean():.2f}")

# %%
# Agreement with the classes (NMI), sorted by the mean. Moons and planes need different
# methods.

figure, ax = plt.subplots(figsize=(8, 6.2), layout="constrained")
ax.imshow(scores[order], cmap="cividis_r", vmin=0, vmax=1, aspect="auto")
for row, i in enumerate(order):
    for j, value in enumerate(scores[i]):
        color = "white" if value > 0.5 else "black"
        ax.text(j, row, f"{value:.2f}", ha="center", va="center", color=color)
ax.set_xticks(range(len(sets)), sets)
ax.set_yticks(range(len(methods)), [list(methods)[i] for i in order])
ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
ax.spines[:].set_visible(False)
plt.show()
