# SPDX-License-Identifier: BSD-3-Clause
"""Data sets of a folder, preprocessed and subsampled, for the studies.

A folder contains NAME.npz files (X, y) and clustering-data-v1/BATTERY/SET.data.gz with
SET.labels0.gz. Images (files with an entry ``shape``) are scaled to unit rows, other
npz files are standardized, and the batteries are used as they are. Label 0 of the
batteries is noise and is not scored.
"""

from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score


def load(folder, cap):
    """Yield (name, X, y, scored points) for every set, at most ``cap`` points each."""
    for path in sorted(Path(folder).glob("*.npz")):
        X, y = read_archive(path, cap)
        yield path.stem, X, y, np.ones(len(y), bool)
    for path in sorted(Path(folder, "clustering-data-v1").glob("*/*.data.gz")):
        X = np.loadtxt(path, ndmin=2)
        labels = path.with_name(path.name.replace(".data.gz", ".labels0.gz"))
        X, y = _cut(X, np.loadtxt(labels, dtype=int), cap)
        yield f"{path.parent.name}/{path.name[:-8]}", X, y, y != 0


def read_archive(path, cap):
    """Return points and labels of a NAME.npz file, at most ``cap`` of them."""
    with np.load(path) as archive:
        # row by row, as in the estimator
        X = np.ascontiguousarray(archive["X"], dtype=float)
        y = archive["y"].ravel()
        images = "shape" in archive.files
    if images:
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    else:
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    return _cut(X, y, cap)


def _cut(X, y, cap):
    """Return a sample of at most cap points, of whole classes if there are many."""
    if len(X) <= cap:
        return X, y
    rng, classes = np.random.RandomState(0), np.unique(y)
    if cap / len(classes) < 20 and len(classes) > 20:
        n_kept = max(2, int(cap / (len(X) / len(classes))))
        kept = np.isin(y, rng.permutation(classes)[:n_kept])
        X, y = X[kept], y[kept]
    if len(X) > cap:
        part = rng.permutation(len(X))[:cap]
        X, y = X[part], y[part]
    return X, y


def scores(y, labels, counted):
    """Return NMI and ARI of the scored points."""
    y, labels = y[counted], labels[counted]
    return normalized_mutual_info_score(y, labels), adjusted_rand_score(y, labels)
