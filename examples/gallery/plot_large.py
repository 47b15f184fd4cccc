"""
More points than one wants to compare
=====================================

``BlockCDSK`` goes through the data a block of rows at a time, from an array, a memory
map, files or anything that gives blocks, and compares every row with some 3000
landmarks, never with other rows. The landmarks are clustered by CDSK, and their votes
label all rows. The result is the same to the bit whatever the blocks and however many
threads.
"""

import os
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.metrics import adjusted_rand_score

from cdsk import BlockCDSK

n = 20_000 if "CDSK_SMALL" in os.environ else 400_000

# %%
# Two spiral arms and a bulge, written to a file a part at a time: nothing here has all
# rows in memory but the labels.


def galaxy(n, rng):
    y = rng.integers(3, size=n)
    along = np.sqrt(rng.uniform(0.06, 1, n))
    angle = 4.2 * along + np.pi * y
    arms = 10 * along[:, np.newaxis] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    arms += rng.normal(size=(n, 2)) * (0.25 + 0.35 * along[:, np.newaxis])
    bulge = rng.normal(scale=0.45, size=(n, 2))
    return np.where(y[:, np.newaxis] == 2, bulge, arms), y


folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "points.npy")
rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, 2))
truth = np.empty(n, dtype=int)
rng = np.random.default_rng(0)
for start in range(0, n, 10_000):
    part = slice(start, start + 10_000)
    rows[part], truth[part] = galaxy(10_000, rng)
rows.flush()

# %%
# The path is all that ``fit`` needs.

began = time.process_time()
model = BlockCDSK(n_clusters=3, n_landmarks=1500, random_state=0).fit(path)
print(
    f"{n} rows in {time.process_time() - began:.1f} s of processor time, adjusted Rand "
    f"index {adjusted_rand_score(truth, model.labels_):.3f}"
)

# %%
# Left, every pixel has the colour of the cluster that most of its rows are in, the more
# of it the more rows there are. Right, the landmarks, as large as the number of rows
# they stand for.

colours = np.array([[0, 114, 178], [230, 159, 0], [0, 158, 115]]) / 255
square = [(-12, 12), (-12, 12)]
counts = np.stack(
    [
        np.histogram2d(*rows[model.labels_ == k].T, bins=300, range=square)[0].T
        for k in range(3)
    ]
)
depth = np.log1p(counts.sum(axis=0))
shade = (depth / depth.max())[..., np.newaxis] ** 0.8
picture = 1 - shade * (1 - colours[counts.argmax(axis=0)])
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
left.imshow(picture, origin="lower", extent=np.ravel(square), interpolation="nearest")
left.set_title(f"{n:,} rows".replace(",", " "))
right.scatter(
    *model.landmarks_.T,
    s=60 * model.landmark_masses_ / model.landmark_masses_.max() + 1,
    c=model.landmark_model_.labels_,
    cmap=ListedColormap(colours),
    alpha=0.7,
    linewidths=0,
)
right.set_title(f"{len(model.landmarks_)} landmarks")
for ax in (left, right):
    ax.set(xlim=square[0], ylim=square[1], aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
plt.show()
folder.cleanup()
