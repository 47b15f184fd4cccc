# SPDX-License-Identifier: BSD-3-Clause
"""Accuracy of results, computed from their definitions and shown with every time."""

import numpy as np

# Entries of a kernel matrix that are compared with their exact values.
_SAMPLE = 20_000

# Kernel values below this are not compared: float32 cannot hold them all.
_SMALLEST = 1e-30


def kernel_error(K, A, B, bandwidth):
    """Return the largest relative error in a sample of entries of a Gaussian kernel.

    The exact values are computed from differences in long double precision.
    """
    rng = np.random.default_rng(0)
    i, j = rng.integers(len(A), size=_SAMPLE), rng.integers(len(B), size=_SAMPLE)
    worst = 0.0
    for part in np.array_split(np.arange(_SAMPLE), 20):
        difference = A[i[part]].astype(np.longdouble) - B[j[part]]
        exponent = np.sum(difference * difference, axis=1) / 2
        exact = np.exp(-exponent / np.longdouble(bandwidth) ** 2)
        counts = exact > _SMALLEST
        error = np.abs(K[i[part], j[part]] - exact)[counts] / exact[counts]
        worst = max(worst, float(error.max(initial=0.0)))
    return worst


def log_votes_error(log_votes, rows, A, B, labels, bandwidth):
    """Return the largest error of the log votes of uniform weights in some rows."""
    votes = np.zeros((len(rows), log_votes.shape[1]), dtype=np.longdouble)
    for vote, point in zip(votes, A[rows].astype(np.longdouble), strict=True):
        exponent = np.sum((point - B) ** 2, axis=1) / 2
        np.add.at(vote, labels, np.exp(-exponent / np.longdouble(bandwidth) ** 2))
    return float(np.abs(np.log(votes / len(B)) - log_votes[rows]).max())


def missed_neighbors(X, indices, distances):
    """Return the number of missed neighbors of about 50 points."""
    missed = 0
    for i in range(0, len(X), max(len(X) // 50, 1)):
        exact = np.linalg.norm(X - X[i], axis=1)
        nearer = np.flatnonzero(exact < distances[i, -1] * (1 - 1e-12))
        missed += len(np.setdiff1d(nearer, [*indices[i], i]))
    return missed


def relative_gap(Q, q, alpha, upper):
    """Return the KKT gap relative to max |q|: min q'a + a'Qa, simplex with a box."""
    gradient = q + 2.0 * Q @ alpha
    # within rounding of a bound is at the bound
    used, free = alpha > 1e-12 * upper, alpha < (1 - 1e-12) * upper
    gap = gradient[used].max() - gradient[free].min()
    return max(float(gap / np.abs(q).max()), 0.0)


def residual(K, vectors):
    """Return the largest norm of Av - theta v over the rows v.

    A is the normalized kernel without its diagonal: for uniform weights the similarity
    is a multiple of K.
    """
    S = K.astype(np.float64)
    np.fill_diagonal(S, 0.0)
    root = np.sqrt(S.sum(axis=1))
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    images = (vectors / root) @ S / root
    theta = np.sum(vectors * images, axis=1, keepdims=True)
    return float(np.linalg.norm(images - theta * vectors, axis=1).max())
