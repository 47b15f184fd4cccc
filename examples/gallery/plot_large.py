"""
Many points, from a file
========================

``BlockCDSK`` reads the data in blocks of rows, from an array, a memory map, files or an
iterable. It compares every row with about 3000 landmarks instead of with other rows.
CDSK clusters the landmarks, and their votes label all rows. The result is the same bits
for any blocks and any number of threads.
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
# Two spiral arms and a bulge, written to a file in parts. Only the labels of all rows
# are in memory.


def make_galaxy(n, rng):
    y = rng.integers(3, size=n)
    radius = np.sqrt(rng.uniform(0.06, 1, n))
    angle = 4.2 * radius + np.pi * y
    arms = 10 * radius[:, np.newaxis] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    arms += rng.normal(size=(n, 2)) * (0.25 + 0.35 * radius[:, np.newaxis])
    bulge = rng.normal(scale=0.45, size=(n, 2))
    return np.where(y[:, np.newaxis] == 2, bulge, arms), y


folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "points.npy")
rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, 2))
truth = np.empty(n, dtype=int)
rng = np.random.default_rng(0)
for start in range(0, n, 10_000):
    part = slice(start, start + 10_000)
    rows[part], truth[part] = make_galaxy(10_000, rng)
rows.flush()

# %%
# ``fit`` takes the path of the file.

start = time.process_time()
model = BlockCDSK(n_clusters=3, n_landmarks=1500, random_state=0).fit(path)
print(
    f"{n} rows, {time.process_time() - start:.1f} s of processor time, adjusted Rand "
    f"index {adjusted_rand_score(truth, model.labels_):.3f}"
)

# %%
# Left: the color of a pixel is the cluster of most of its rows, its intensity their
# number. Right: the landmarks, sized by the number of rows they represent.

colors = np.array([[0, 114, 178], [230, 159, 0], [0, 158, 115]]) / 255
limits = [(-12, 12), (-12, 12)]
counts = np.stack(
    [
        np.histogram2d(*rows[model.labels_ == k].T, bins=300, range=limits)[0].T
        for k in range(3)
    ]
)
depth = np.log1p(counts.sum(axis=0))
shade = (depth / depth.max())[..., np.newaxis] ** 0.8
image = 1 - shade * (1 - colors[counts.argmax(axis=0)])
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
left.imshow(image, origin="lower", extent=np.ravel(limits), interpolation="nearest")
left.set_title(f"{n:,} rows".replace(",", " "))
right.scatter(
    *model.landmarks_.T,
    s=60 * model.landmark_counts_ / model.landmark_counts_.max() + 1,
    c=model.landmark_model_.labels_,
    cmap=ListedColormap(colors),
    alpha=0.7,
    linewidths=0,
)
right.set_title(f"{len(model.landmarks_)} landmarks")
for ax in (left, right):
    ax.set(xlim=limits[0], ylim=limits[1], aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
plt.show()
folder.cleanup()
