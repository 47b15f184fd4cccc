"""
How many clusters?
==================

If the data fall into c clusters, c eigenvalues of the normalised similarity are near 1
and the next is not. ``suggest_n_clusters`` compares how much harder one more cut would
be, at several scales, and tells its runner-up.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from cdsk import CDSK, plot, suggest_n_clusters

# %%
# Three groups of three heaps: three clusters, or nine.

groups = np.array([[0.0, 0.0], [11.0, 2.0], [4.5, 10.0]])
turns = np.array([0.2, 1.0, 0.6])[:, np.newaxis] + 2 * np.pi * np.arange(3) / 3
heaps = groups[:, np.newaxis] + 2.3 * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
X, _ = make_blobs(900, centers=heaps.reshape(9, 2), cluster_std=0.7, random_state=0)

choice = suggest_n_clusters(X, random_state=0)
print(f"suggested {choice.n_clusters}, runner-up {choice.runner_up}")

# %%
# The score is the mean over the scales of the logarithm of the ratio of two cuts: the
# least that a further cluster would need, and the one that this number needs.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
best = {choice.n_clusters: "#D55E00", choice.runner_up: "#E69F00"}
axes[0].bar(
    choice.candidates,
    choice.scores,
    color=[best.get(c, "#9a9a9a") for c in choice.candidates],
)
axes[0].set(xlabel="number of clusters", ylabel="score", title="Two good answers")
axes[0].set(xticks=[2, 3, 6, 9, 12, 15, 18])
axes[0].spines[["top", "right"]].set_visible(False)
for ax, c in zip(axes[1:], best, strict=True):
    plot.scatter(CDSK(c, random_state=0).fit(X), X, ax=ax, title=f"{c} clusters")
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
    ax.spines[:].set_visible(False)
plt.show()
