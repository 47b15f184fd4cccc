"""
Outliers among images
=====================

36 of the handwritten digits are modified: their pixels are shuffled, they combine the
halves of two digits, or they are negatives. ``typicality_`` is the sum of the votes of
the other points, in units of the median. It is near 0 for outliers, whatever their
cluster.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from cdsk import CDSK

rng = np.random.default_rng(0)
X, _ = load_digits(return_X_y=True)
kinds = ("shuffled", "two halves", "inverted")
kind = np.full(len(X), -1)
modified = rng.choice(len(X), 36, replace=False)
kind[modified] = np.repeat([0, 1, 2], 12)
for i in modified[:12]:
    X[i] = rng.permutation(X[i])
for i in modified[12:24]:
    X[i, :32] = X[rng.integers(len(X)), 32:]
X[modified[24:]] = 16 - X[modified[24:]]

# %%
# The area under the ROC curve is the probability that a modified image has a larger
# outlier score than an original one. The other methods find the negatives and CDSK does
# not: the twelve negatives resemble each other, so they form a small cluster.

model = CDSK(10, random_state=0).fit(X)
outlier_scores = {
    "CDSK, typicality": -model.typicality_,
    "local outlier factor": -LocalOutlierFactor().fit(X).negative_outlier_factor_,
    "isolation forest": -IsolationForest(random_state=0).fit(X).score_samples(X),
}
print(f"{'':22s}" + "".join(f"{name:>15s}" for name in kinds))
for method, values in outlier_scores.items():
    areas = []
    for k in range(3):
        included = (kind == -1) | (kind == k)
        areas.append(roc_auc_score(kind[included] == k, values[included]))
    print(f"{method:22s}" + "".join(f"{area:15.3f}" for area in areas))

# %%
# Images sorted by outlier score, and below them the first thirty. Modified images have
# a frame; the others are unusual digits.

order = np.argsort(model.typicality_)
figure = plt.figure(figsize=(9, 5.2), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.1, 1))
ax = top.subplots()
ranks = 1 + np.arange(len(X))
values = np.maximum(model.typicality_[order], 1e-4)
ax.loglog(ranks, values, color="#0072B2", label="original")
for k, (color, marker) in enumerate(
    (("#D55E00", "o"), ("#E69F00", "s"), ("#000000", "v"))
):
    members = kind[order] == k
    ax.loglog(ranks[members], values[members], marker, color=color, label=kinds[k])
ax.set(xlabel="image, by typicality", ylabel="typicality")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
for tile, i in zip(bottom.subplots(3, 10).flat, order, strict=False):
    tile.imshow(X[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    tile.set(xticks=[], yticks=[])
    tile.spines[:].set(visible=bool(kind[i] >= 0), color="#D55E00", linewidth=2.5)
plt.show()
