# SPDX-License-Identifier: BSD-3-Clause
"""Decomposition of a symmetric similarity into two semi-definite ones.

With eigenvalues w_k and eigenvectors v_k,

    S = S+ - S-,   S+ = sum_{w_k > 0} w_k v_k v_k',   S- = sum_{w_k < 0} |w_k| v_k v_k'

A Cholesky factorization (n^3 / 3 operations) tests whether S- is 0; only an indefinite
S is decomposed (about 9 n^3).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from cdsk._operators.indefinite import is_semidefinite
from cdsk._utils import check_memory
from cdsk._validation import check_symmetric_matrix


def decompose_similarity(
    similarity: ArrayLike,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the positive and the negative part of a symmetric similarity.

    Parameters
    ----------
    similarity : array-like of shape (n, n)
        Symmetric matrix S of any definiteness.

    Returns
    -------
    positive : ndarray of shape (n, n)
        S+, positive semi-definite; equal to S if S is positive semi-definite.
    negative : ndarray of shape (n, n)
        S-, positive semi-definite, with ``S = positive - negative``. Exactly zero if no
        eigenvalue of S is below the rounding error ``-n * eps * max |S|``.

    Examples
    --------
    >>> from cdsk.theory import decompose_similarity
    >>> positive, negative = decompose_similarity([[0.0, 1.0], [1.0, 0.0]])
    >>> positive.round(6)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    >>> negative.round(6)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    S = check_symmetric_matrix(similarity, "similarity")
    n = len(S)
    check_memory(4 * 8 * n * n, "The decomposition", "Use fewer points.")
    rounding = n * float(np.finfo(S.dtype).eps) * float(np.abs(S).max())
    S = S.astype(np.float64)
    if is_semidefinite(S.copy(), rounding):
        return S, np.zeros_like(S)
    values, vectors = eigh(S)
    positive, negative = (
        (vectors * np.where(part > rounding, part, 0.0)) @ vectors.T
        for part in (values, -values)
    )
    return positive, negative
