# SPDX-License-Identifier: BSD-3-Clause
"""Plain spectral clustering: from a kernel to labels, all weights equal."""

import numpy as np

from cdsk._steps.eigen import TOLERANCE
from cdsk._steps.embedding import spectral_step
from cdsk._steps.labels import assign_labels


def spectral_partition(
    kernel,
    n_clusters,
    rng,
    *,
    method="kmeans",
    n_init=10,
    solver="auto",
    tol=TOLERANCE,
    start=None,
):
    """The ``Embedding`` of a ``Kernel`` and the labels of its points.

    With equal weights S is a multiple of K, whatever the penalty.
    """
    uniform = np.full(kernel.n, 1.0 / kernel.n)
    similarity = kernel.similarity(uniform, 1.0)
    found = spectral_step(similarity, n_clusters, rng, start, solver, tol)
    labels = assign_labels(
        found.vectors,
        method,
        n_init=n_init,
        random_state=rng,
        kernel=kernel,
        masses=kernel.masses,
    )
    return found, labels
