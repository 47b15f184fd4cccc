"""
Images that belong nowhere
==========================

Among the handwritten digits are 36 that have been tampered with: with their pixels
shuffled, made of the halves of two, or turned into their negative. ``typicality_`` is
how much the other points vote for a point, in units of the median: near 0 for those
that resemble nothing, whatever cluster they were put into.
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
kinds = ("shuffled", "of two halves", "negative")
kind = np.full(len(X), -1)
chosen = rng.choice(len(X), 36, replace=False)
kind[chosen] = np.repeat([0, 1, 2], 12)
for i in chosen[:12]:
    X[i] = rng.permutation(X[i])
for i in chosen[12:24]:
    X[i, :32] = X[rng.integers(len(X)), 32:]
X[chosen[24:]] = 16 - X[chosen[24:]]

# %%
# The area under the ROC curve is the chance that an image that was tampered with is
# found stranger than one that was not. The negatives are found by the others and not by
# CDSK: twelve of a kind resemble each other, and to it they are a small cluster rather
# than outliers.

model = CDSK(10, random_state=0).fit(X)
strangeness = {
    "CDSK, typicality": -model.typicality_,
    "local outlier factor": -LocalOutlierFactor().fit(X).negative_outlier_factor_,
    "isolation forest": -IsolationForest(random_state=0).fit(X).score_samples(X),
}
print(f"{'':22s}" + "".join(f"{name:>15s}" for name in kinds))
for method, values in strangeness.items():
    areas = []
    for k in range(3):
        compared = (kind == -1) | (kind == k)
        areas.append(roc_auc_score(kind[compared] == k, values[compared]))
    print(f"{method:22s}" + "".join(f"{area:15.3f}" for area in areas))

# %%
# All images from the strangest on; below, the first thirty. Those with a frame were
# tampered with. Of the others one sees why.

order = np.argsort(model.typicality_)
figure = plt.figure(figsize=(9, 5.2), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=(1.1, 1))
ax = above.subplots()
ranks = 1 + np.arange(len(X))
values = np.maximum(model.typicality_[order], 1e-4)
ax.loglog(ranks, values, color="#0072B2", label="as they were")
for k, (colour, marker) in enumerate(
    (("#D55E00", "o"), ("#E69F00", "s"), ("#000000", "v"))
):
    marked = kind[order] == k
    ax.loglog(ranks[marked], values[marked], marker, color=colour, label=kinds[k])
ax.set(xlabel="image, by typicality", ylabel="typicality")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
for tile, i in zip(below.subplots(3, 10).flat, order, strict=False):
    tile.imshow(X[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    tile.set(xticks=[], yticks=[])
    tile.spines[:].set(visible=bool(kind[i] >= 0), color="#D55E00", linewidth=2.5)
plt.show()
