"""
How many clusters?
==================

With c clusters, c eigenvalues of the normalized similarity are near 1 and the next one
is not. ``suggest_n_clusters`` compares how much one more cut would cost, at several
scales, and also returns the second best number.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from cdsk import CDSK, plot, suggest_n_clusters

# %%
# Three groups of three blobs: three clusters, or nine.

groups = np.array([[0.0, 0.0], [11.0, 2.0], [4.5, 10.0]])
turns = np.array([0.2, 1.0, 0.6])[:, np.newaxis] + 2 * np.pi * np.arange(3) / 3
centers = groups[:, np.newaxis] + 2.3 * np.stack(
    [np.cos(turns), np.sin(turns)], axis=-1
)
X, _ = make_blobs(900, centers=centers.reshape(9, 2), cluster_std=0.7, random_state=0)

choice = suggest_n_clusters(X, random_state=0)
print(f"suggested {choice.n_clusters}, runner-up {choice.runner_up}")

# %%
# The score is the logarithm of a ratio of two cuts, averaged over the scales: the
# smallest cut that one more cluster would need, and the cut that this number needs.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
best = {choice.n_clusters: "#D55E00", choice.runner_up: "#E69F00"}
axes[0].bar(
    choice.candidates,
    choice.scores,
    color=[best.get(c, "#9a9a9a") for c in choice.candidates],
)
axes[0].set(
    xlabel="number of clusters", ylabel="score", title="Suggestion and runner-up"
)
axes[0].set(xticks=[2, 3, 6, 9, 12, 15, 18])
axes[0].spines[["top", "right"]].set_visible(False)
for ax, c in zip(axes[1:], best, strict=True):
    plot.scatter(CDSK(c, random_state=0).fit(X), X, ax=ax, title=f"{c} clusters")
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
    ax.spines[:].set_visible(False)
plt.show()
