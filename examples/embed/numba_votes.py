# SPDX-License-Identifier: BSD-3-Clause
"""Reduced set density estimate, fitted and evaluated in numba functions.

A Parzen density estimate uses all n points for every value. The reduced set density
estimate (Girolami & He, IEEE PAMI 25, 2003) uses a subset, with weights that minimize
the integrated squared difference between both estimates. Up to a constant, this is

    x'Qx - 2 x'k,    Q_ij = 2^(-d/2) K_sqrt(2)b(x_i, x_j),    k_i = mean_j K_b(x_i, x_j)

with sum(x) = 1, x >= 0. The n x n matrix Q is never stored: the solver requests single
rows, which a numba function computes.

Run it with cdsk and numba installed: python examples/embed/numba_votes.py
"""

import ctypes
import math

import numpy as np
from numba import carray, cfunc, njit, types
from numba.extending import get_cython_function_address

# Pointers are void pointers here: numba fills them from array.ctypes.
pointer, size, number = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_double
packed_size = ctypes.CFUNCTYPE(size, size, size)(
    get_cython_function_address("cdsk._kernel", "cdsk_packed_size")
)
cdsk_log_votes = ctypes.CFUNCTYPE(
    ctypes.c_int, pointer, size, pointer, size, size, pointer, size, pointer, size,
    pointer, pointer, size, pointer, pointer, ctypes.c_int,
)(get_cython_function_address("cdsk._kernel", "cdsk_log_votes_f64"))  # fmt: skip
cdsk_solve_qp = ctypes.CFUNCTYPE(
    ctypes.c_int, size, pointer, pointer, pointer, pointer, number, number, size,
    pointer, pointer, pointer, pointer, pointer,
)(get_cython_function_address("cdsk._smo", "cdsk_solve_qp"))  # fmt: skip

doubles = types.CPointer(types.float64)


@cfunc(doubles(doubles, types.intp, doubles))
def density_row(user, i, scratch):
    """Compute row i of Q. user: n, d, 1 / (4 bandwidth^2), then the points."""
    n, d = int(user[0]), int(user[1])
    X = carray(user, 3 + n * d)[3:].reshape(n, d)
    for j in range(n):
        squared = 0.0
        for k in range(d):
            squared += (X[i, k] - X[j, k]) ** 2
        scratch[j] = 2.0 ** (-0.5 * d) * math.exp(-squared * user[2])
    return scratch


@njit
def log_density(new, points, weights, bandwidth):
    """Return log sum_j weights_j K(x, x_j) for each row x of new, K not normalized."""
    (m, d), n = new.shape, len(points)
    b = np.array([bandwidth])
    offsets = np.array([0, n], np.intp)
    votes = np.empty(m)
    work = np.empty(packed_size(m, d) + packed_size(n, d))
    status = cdsk_log_votes(
        new.ctypes, m, points.ctypes, n, d, b.ctypes, 0, b.ctypes, 0,
        weights.ctypes, offsets.ctypes, 1, votes.ctypes, work.ctypes, 1,
    )  # fmt: skip
    if status != 0:
        raise ValueError("cdsk_log_votes: arguments out of range")
    return votes


@njit
def reduced_set(X, bandwidth, tol, row):
    """Return the weights and the KKT gap; row is the address of density_row."""
    n, d = X.shape
    p = -2.0 * np.exp(log_density(X, X, np.full(n, 1.0 / n), bandwidth))
    user = np.concatenate(
        (np.array([n, d, 0.25 / bandwidth**2]), X.copy().reshape(n * d))
    )
    diagonal = np.full(n, 2.0 ** (-0.5 * d))
    x = np.full(n, 1.0 / n)
    gradient, work = np.empty(n), np.empty(4 * n)
    gap, n_iter = np.empty(1), np.empty(1, np.intp)
    status = cdsk_solve_qp(
        n, row, user.ctypes, diagonal.ctypes, p.ctypes, 1.0, tol, 1000 * n,
        x.ctypes, gradient.ctypes, work.ctypes, gap.ctypes, n_iter.ctypes,
    )  # fmt: skip
    if status != 0:
        raise ValueError("cdsk_solve_qp did not converge")
    return x, gap[0]


def points(n, seed):
    """Return a ring and a blob."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n // 2)
    ring = 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.concatenate([ring, np.zeros((n - n // 2, 2))]) + 0.3 * rng.normal(
        size=(n, 2)
    )


if __name__ == "__main__":
    X, bandwidth = points(1000, 0), 0.5
    weights, gap = reduced_set(X, bandwidth, 1e-6, density_row.address)
    keep = weights > 0
    print(f"{keep.sum()} of {len(X)} points have positive weight, KKT gap {gap:.1e}")
    for seed in range(1, 4):
        batch = points(500, seed)
        reduced = log_density(batch, X[keep], weights[keep], bandwidth)
        all_points = log_density(batch, X, np.full(1000, 1e-3), bandwidth)
        print(
            f"batch {seed}: mean log density {reduced.mean():.3f}, all points "
            f"{all_points.mean():.3f}"
        )
