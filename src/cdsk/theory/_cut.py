# SPDX-License-Identifier: BSD-3-Clause
"""The normalized cut of a partition and its spectral lower bound.

    sum_k cut(A_k, rest) / vol(A_k)  =  Tr(H' L H)  >=  sum_{k <= c} sigma_k

with the scaled indicators H of the clusters, H' D H = I, and the eigenvalues
sigma_1 <= sigma_2 <= ... of the normalized Laplacian D^-1/2 L D^-1/2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh

from cdsk._operators.dense import DenseKernel
from cdsk._spectral import cut_ratios
from cdsk._threads import resolve_n_threads
from cdsk._validation import check_kernel_values, check_symmetric_matrix
from cdsk.theory._labels import check_labels


@dataclass(frozen=True)
class NormalizedCut:
    """A normalized cut, and a lower bound on all cuts into as many clusters.

    Attributes
    ----------
    value : float
        ``sum_k cut(A_k, rest) / vol(A_k)``.
    lower_bound : float
        Sum of the c smallest eigenvalues of the normalized Laplacian.
    """

    value: float
    lower_bound: float


def normalized_cut(similarity: ArrayLike, labels: ArrayLike) -> NormalizedCut:
    """Return the normalized cut of a partition, and its spectral lower bound.

    Parameters
    ----------
    similarity : array-like of shape (n, n)
        Symmetric non-negative similarities. The diagonal is ignored, as in a fit, and
        so are points without similarity to any other point.
    labels : array-like of shape (n,)
        Cluster of each point, at least two clusters.

    Returns
    -------
    cut : NormalizedCut

    Examples
    --------
    >>> from cdsk.theory import normalized_cut
    >>> path = [[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 2], [0, 0, 2, 0]]
    >>> normalized_cut(path, [0, 0, 1, 1]).value
    0.4
    """
    S = check_symmetric_matrix(similarity, "similarity").astype(np.float64)
    check_kernel_values(S, "similarity")
    classes, labels = check_labels(labels, len(S))
    np.fill_diagonal(S, 0.0)
    degrees = S.sum(axis=1)
    volumes = np.bincount(labels, weights=degrees)
    if not (volumes > 0).all():
        raise ValueError(
            "Every cluster must have a point with positive similarity to another "
            f"point; got none in cluster {classes[np.argmin(volumes)]}."
        )
    c = len(classes)
    kernel = DenseKernel(S, resolve_n_threads(None))
    value = float(np.sum(cut_ratios(kernel, labels)))

    used = degrees > 0
    root = 1.0 / np.sqrt(degrees[used])
    A = root[:, np.newaxis] * S[np.ix_(used, used)] * root
    m = len(A)
    leading = eigvalsh(A, subset_by_index=(m - c, m - 1), overwrite_a=True)
    return NormalizedCut(value, float(np.sum(1.0 - leading)))
