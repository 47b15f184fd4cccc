# SPDX-License-Identifier: BSD-3-Clause
"""How good a result is, from its definition: what stands beside every time."""

import numpy as np

# Entries of a kernel matrix that are compared with their exact values.
_SAMPLE = 20_000

# Kernel values below this are not compared: float32 cannot hold them all.
_SMALLEST = 1e-30


def kernel_error(K, A, B, bandwidth):
    """Largest relative error of a sample of the entries of a Gaussian kernel.

    Against differences, squares and the exponential in long double.
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
    """Largest error of the logarithms of uniform votes in some rows."""
    votes = np.zeros((len(rows), log_votes.shape[1]), dtype=np.longdouble)
    for vote, point in zip(votes, A[rows].astype(np.longdouble), strict=True):
        exponent = np.sum((point - B) ** 2, axis=1) / 2
        np.add.at(vote, labels, np.exp(-exponent / np.longdouble(bandwidth) ** 2))
    return float(np.abs(np.log(votes / len(B)) - log_votes[rows]).max())


def missed_neighbors(X, indices, distances):
    """Points nearer than the last neighbor and not among them, of 50 points or so."""
    missed = 0
    for i in range(0, len(X), max(len(X) // 50, 1)):
        exact = np.linalg.norm(X - X[i], axis=1)
        nearer = np.flatnonzero(exact < distances[i, -1] * (1 - 1e-12))
        missed += len(np.setdiff1d(nearer, [*indices[i], i]))
    return missed


def relative_gap(Q, q, alpha, upper):
    """KKT gap of min q'a + a'Qa over the simplex with a box, relative to max |q|."""
    gradient = q + 2.0 * Q @ alpha
    # a bound missed by rounding is a bound
    used, free = alpha > 1e-12 * upper, alpha < (1 - 1e-12) * upper
    gap = gradient[used].max() - gradient[free].min()
    return max(float(gap / np.abs(q).max()), 0.0)


def residual(K, vectors):
    """Largest norm of Av - theta v for the rows v, A the normalized similarity K.

    Uniform weights, hence S is a multiple of K; its diagonal is left out.
    """
    S = K.astype(np.float64)
    np.fill_diagonal(S, 0.0)
    root = np.sqrt(S.sum(axis=1))
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    images = (vectors / root) @ S / root
    theta = np.sum(vectors * images, axis=1, keepdims=True)
    return float(np.linalg.norm(images - theta * vectors, axis=1).max())
