# SPDX-License-Identifier: BSD-3-Clause
"""Validation of class labels (tests/test_theory_bound.py)."""

import numpy as np


def check_labels(labels, n, n_classes=None):
    """Return the classes, and the index of the class of each of n labels.

    At least two classes are required, or exactly ``n_classes``.
    """
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise ValueError(
            f"labels must have shape ({n},), one per point; got shape {labels.shape}."
        )
    # NaN is the one value that is not equal to itself
    missing = np.asarray(labels != labels, dtype=bool)
    if missing.any():
        raise ValueError(
            "labels must have a class for every point; got NaN at row "
            f"{int(np.argmax(missing))}."
        )
    try:
        classes, indices = np.unique(labels, return_inverse=True)
    except TypeError:
        types = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise ValueError(
            f"labels must have one type, so that they can be sorted; got {types}."
        ) from None
    if len(classes) < 2 or n_classes not in (None, len(classes)):
        expected = "at least 2" if n_classes is None else n_classes
        raise ValueError(f"labels must have {expected} classes; got {len(classes)}.")
    return classes, indices
