# SPDX-License-Identifier: BSD-3-Clause
"""The normalised cut of a partition and the spectral bound below it.

    sum_k cut(A_k, rest) / vol(A_k)  =  Tr(H' L H)  >=  sum_{k <= c} sigma_k

with the scaled indicators H of the parts, for which H' D H = I, and the eigenvalues
sigma_1 <= sigma_2 <= ... of the normalised Laplacian D^-1/2 L D^-1/2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh

from cdsk._kernels.dense import DenseKernel
from cdsk._steps.labels import cut_ratios
from cdsk._threads import resolve_n_threads
from cdsk._validation import check_kernel_values, check_symmetric_matrix
from cdsk.theory._labels import check_labels


@dataclass(frozen=True)
class NormalisedCut:
    """A cut and what no cut into as many parts can go below.

    Attributes
    ----------
    value : float
        ``sum_k cut(A_k, rest) / vol(A_k)``.
    lower_bound : float
        Sum of the c smallest eigenvalues of the normalised Laplacian.
    """

    value: float
    lower_bound: float


def normalised_cut(similarity: ArrayLike, labels: ArrayLike) -> NormalisedCut:
    """Normalised cut of a partition, with the spectral bound below it.

    Parameters
    ----------
    similarity : array-like of shape (n, n)
        Symmetric non-negative similarities; the diagonal is left out, as in the fit.
        Points with no similarity to any other are left out too.
    labels : array-like of shape (n,)
        Part of each point, at least two parts.

    Returns
    -------
    cut : NormalisedCut

    Examples
    --------
    >>> from cdsk.theory import normalised_cut
    >>> path = [[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 2], [0, 0, 2, 0]]
    >>> normalised_cut(path, [0, 0, 1, 1]).value
    0.4
    """
    S = check_symmetric_matrix(similarity, "similarity").astype(np.float64)
    check_kernel_values(S, "similarity")
    classes, labels = check_labels(labels, len(S))
    np.fill_diagonal(S, 0.0)
    degrees = S.sum(axis=1)
    volumes = np.bincount(labels, weights=degrees)
    if not (volumes > 0).all():
        part = classes[np.argmin(volumes)]
        raise ValueError(
            "Every part must hold a point with similarity to another one; got "
            f"none in part {part}."
        )
    c = len(classes)
    kernel = DenseKernel(S, resolve_n_threads(None))
    value = float(np.sum(cut_ratios(kernel, labels)))

    used = degrees > 0
    root = 1.0 / np.sqrt(degrees[used])
    A = root[:, np.newaxis] * S[np.ix_(used, used)] * root
    m = len(A)
    leading = eigvalsh(A, subset_by_index=(m - c, m - 1), overwrite_a=True)
    return NormalisedCut(value, float(np.sum(1.0 - leading)))
