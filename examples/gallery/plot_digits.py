"""
Margins of handwritten digits
=============================

1797 images of 8 x 8 pixels, clustered without labels. The margin of an image, from the
votes of the other points, measures how certain its cluster is.
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
# From here on, labels are used to name each cluster after the digit of most of its
# images. Labels with a small margin are wrong more often.

name = np.array([np.bincount(digit[model.labels_ == k]).argmax() for k in range(10)])
correct = name[model.labels_] == digit
for low, high in ((-1.0, 0.5), (0.5, 0.9), (0.9, 1.01)):
    part = (model.margins_ >= low) & (model.margins_ < high)
    print(
        f"margin {low:4.1f} to {min(high, 1):.1f}: {part.sum():4d} images, "
        f"{correct[part].mean():.0%} show the digit of their cluster"
    )

# %%
# Each row is a cluster: the nine most typical images, and the five of smallest margin,
# with the true digit where it differs. Threes and nines share a cluster, and ones with
# a foot have a cluster of their own.

order = np.argsort(name, kind="stable")
figure, axes = plt.subplots(10, 15, figsize=(9, 6.4))
for row, k in zip(axes, order, strict=True):
    members = np.flatnonzero(model.labels_ == k)
    typical = members[np.argsort(-model.typicality_[members])[:9]]
    uncertain = members[np.argsort(model.margins_[members])[:5]]
    shown = [*typical, None, *uncertain]
    for ax, i in zip(row, shown, strict=True):
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        if i is None:
            continue
        ax.imshow(X[i].reshape(8, 8), cmap="gray_r", vmax=16)
        if not correct[i]:
            ax.spines[:].set(visible=True, color="#D55E00", linewidth=2)
            ax.text(
                x=0.97,
                y=0.03,
                s=digit[i],
                transform=ax.transAxes,
                ha="right",
                color="#D55E00",
                weight="bold",
            )
    row[0].set_ylabel(len(members), rotation=0, ha="right", va="center", fontsize=9)
axes[0, 4].set_title("most typical", fontsize=11)
axes[0, 12].set_title("smallest margin", fontsize=11)
figure.subplots_adjust(
    left=0.05, bottom=0.01, right=0.99, top=0.95, wspace=0.06, hspace=0.06
)
plt.show()
