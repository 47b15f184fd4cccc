# SPDX-License-Identifier: BSD-3-Clause
"""Plain spectral clustering: from a kernel to labels, all weights equal."""

import numpy as np

from cdsk._steps.eigen import TOLERANCE
from cdsk._steps.embedding import spectral_step
from cdsk._steps.labels import assign_labels
from cdsk._warn import warn


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


def warn_of_strays(embedding, kernel):
    """Tell how many points of an ``Embedding`` no cluster is similar to."""
    count = np.count_nonzero(embedding.stray)
    if count and len(embedding.vectors) > 1:  # one cluster is similar to all
        whose = "their nearest neighbour"
        if kernel.points is None:
            whose = "the most similar point, or of that with the largest similarities"
        warn(
            f"{count} of {kernel.n} points have no similarity to any cluster and took "
            f"the label of {whose}. To connect them takes {kernel.remedy}.",
            UserWarning,
        )


def warn_of_fewer_clusters(labels, n_clusters, kernel):
    """Tell if labels, numbered from 0, are of fewer clusters than asked for."""
    found = int(labels.max()) + 1
    if found < n_clusters:
        warn(
            f"The kernel separates {found} groups of points; expected n_clusters="
            f"{n_clusters}. There are no more clusters than groups. More takes "
            f"{kernel.remedy}.",
        )
