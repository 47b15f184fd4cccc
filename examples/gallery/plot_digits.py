"""
Handwritten digits, and which to trust
======================================

1797 images of 8 x 8 pixels, clustered without their labels. The votes of the other
points for an image tell how certain its cluster is: its margin.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from cdsk import CDSK

X, digit = load_digits(return_X_y=True)
model = CDSK(n_clusters=10, random_state=0).fit(X)
print(f"NMI {normalized_mutual_info_score(digit, model.labels_):.3f}")

# %%
# Labels are used from here on only, to name the clusters: a cluster is called what most
# of its images show. Where the margin is small the label is more often wrong.

name = np.array([np.bincount(digit[model.labels_ == k]).argmax() for k in range(10)])
right = name[model.labels_] == digit
for low, high in ((-1.0, 0.5), (0.5, 0.9), (0.9, 1.01)):
    part = (model.margins_ >= low) & (model.margins_ < high)
    print(
        f"margin {low:4.1f} to {min(high, 1):.1f}: {part.sum():4d} images, "
        f"{right[part].mean():.0%} of them show the digit of their cluster"
    )

# %%
# A row is a cluster: the nine images of largest typicality, and the five of smallest
# margin with their true digits where the cluster is called otherwise. Threes and nines
# share a cluster, and ones that stand on a foot have one to themselves.

order = np.argsort(name, kind="stable")
figure, axes = plt.subplots(10, 15, figsize=(9, 6.4))
for row, k in zip(axes, order, strict=True):
    members = np.flatnonzero(model.labels_ == k)
    typical = members[np.argsort(-model.typicality_[members])[:9]]
    doubtful = members[np.argsort(model.margins_[members])[:5]]
    shown = [*typical, None, *doubtful]
    for ax, i in zip(row, shown, strict=True):
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        if i is None:
            continue
        ax.imshow(X[i].reshape(8, 8), cmap="gray_r", vmax=16)
        if not right[i]:
            ax.spines[:].set(visible=True, color="#D55E00", linewidth=2)
            ax.text(
                *(0.97, 0.03, digit[i]),
                transform=ax.transAxes,
                ha="right",
                color="#D55E00",
                weight="bold",
            )
    row[0].set_ylabel(len(members), rotation=0, ha="right", va="center", fontsize=9)
axes[0, 4].set_title("most typical", fontsize=11)
axes[0, 12].set_title("least certain", fontsize=11)
figure.subplots_adjust(0.05, 0.01, 0.99, 0.95, 0.06, 0.06)
plt.show()
