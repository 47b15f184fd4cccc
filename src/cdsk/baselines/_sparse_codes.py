# SPDX-License-Identifier: BSD-3-Clause
"""Points as sparse combinations of others (tests/test_baselines_l1_graph.py).

A code is a pair: the indices of some points, its atoms, and their coefficients.
"""

import numpy as np
from scipy import sparse

from cdsk._utils import check_memory, warn

# Atoms that join the active set at a time, and the maximum number of iterations.
_MAX_NEW_ATOMS, _MAX_ITER = 8, 10**4
# Added to the diagonal of Gram matrices, so that the minimizer is unique.
_RIDGE = 1e-10
# Tolerated violation of optimality of inactive atoms: relative to their cost, and
# relative to the diagonal of Gram matrices.
_TOLERANCE, _ROUNDING = 1e-6, 1e-12
# Entries of a product that are computed at a time; Ctrl-C is handled in between.
_BATCH_SIZE = 2**24

EMPTY_CODE = np.empty(0, dtype=np.intp), np.empty(0)


def linear_gram(X):
    """Return the inner products (n, n) of the rows of X."""
    n, d = X.shape
    check_memory(8 * n * n, "The Gram matrix of all points", "Use fewer points.")
    gram = np.empty((n, n))
    step = max(1, _BATCH_SIZE // (n + d))
    for begin in range(0, n, step):
        batch = slice(begin, begin + step)
        np.matmul(X[batch], X.T, out=gram[batch])
    return gram


def sparse_code(
    gram, linear, costs, initial=EMPTY_CODE, *, ridge=0.0, excluded=(), affine=False
):
    """Return the code a that minimizes the lasso objective.

        1/2 a'(G + ridge I)a - linear'a + sum_j costs_j |a_j|

    Coefficients of ``excluded`` atoms are 0, and coefficients sum to 1 if ``affine``;
    the ``initial`` code must then sum to 1 as well.

    This is an active-set method, like that of Lee, Battle, Raina & Ng (2007). For given
    signs of a the minimizer solves a linear system. Atoms that reach zero on the way to
    it leave the active set. Then the inactive atoms that violate the optimality
    conditions most join it, until none does. Coordinate descent takes 10^5 passes and
    more if atoms are nearly parallel.
    """
    costs = np.broadcast_to(costs, len(gram))
    (atoms, a), excluded, multiplier = initial, list(excluded), 0.0
    signs = np.sign(a)
    for _ in range(_MAX_ITER):
        while len(atoms):
            best, multiplier = _solve_for_signs(
                gram, linear, costs, atoms, signs, ridge, affine
            )
            flipped = best * signs <= 0
            if not flipped.any():
                a = best
                break
            is_new = a == 0
            leaves = flipped & is_new
            if not leaves.any():
                steps = np.full(len(atoms), np.inf)
                steps[flipped] = a[flipped] / (a[flipped] - best[flipped])
                leaves = steps == steps.min()
                a = a + steps.min() * (best - a)
            elif (leaves == is_new).all():
                # the first one, if it is alone, has the right sign up to rounding
                first = np.argmax(is_new)
                if is_new.sum() == 1:
                    excluded.append(atoms[first])
                else:
                    leaves[first] = False
            atoms, a, signs = atoms[~leaves], a[~leaves], signs[~leaves]
        slope = linear - a @ gram[atoms] - multiplier
        violation = np.abs(slope) - costs
        violation[excluded] = violation[atoms] = 0.0
        new = np.flatnonzero(violation > _TOLERANCE * costs + _ROUNDING)
        if not len(new):
            break
        new = new[np.argsort(-violation[new], kind="stable")[:_MAX_NEW_ATOMS]]
        atoms = np.concatenate([atoms, new])
        a = np.concatenate([a, np.zeros(len(new))])
        signs = np.concatenate([signs, np.sign(slope[new])])
    else:
        warn(
            f"A sparse code did not converge in {_MAX_ITER} iterations: the optimality "
            f"conditions are violated by {violation.max():.1e}.",
        )
    used = a != 0
    return atoms[used], a[used]


def _solve_for_signs(gram, linear, costs, atoms, signs, ridge, affine):
    """Return the best coefficients of atoms for given signs, and a multiplier."""
    m = len(atoms)
    right = linear[atoms] - costs[atoms] * signs
    system = np.ones((m + affine, m + affine))
    system[:m, :m] = gram[np.ix_(atoms, atoms)]
    system[range(m), range(m)] += ridge + _RIDGE
    if not affine:
        return np.linalg.solve(system, right), 0.0
    system[m, m] = 0.0
    solution = np.linalg.solve(system, np.append(right, 1.0))
    return solution[:m], solution[m]


def stack_codes(codes):
    """Return a CSR array (n, n) with one code per row."""
    indptr = np.cumsum([0, *(len(atoms) for atoms, _ in codes)])
    atoms, values = (np.concatenate(arrays) for arrays in zip(*codes, strict=True))
    matrix = sparse.csr_array((values, atoms, indptr), shape=(len(codes), len(codes)))
    matrix.sort_indices()
    return matrix


def keep_largest_entries(A, share):
    """Return a CSR array with the largest entries of each row of A.

    They are the fewest with at least this share of the l1 norm of the row.
    """
    sizes = np.abs(A.data)
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    order = np.lexsort((-sizes, row))
    before = np.concatenate([[0.0], np.cumsum(sizes[order])])
    begins = before[A.indptr[:-1]]
    total = before[A.indptr[1:]] - begins
    # an entry is kept if the larger ones have less than the share
    kept = np.empty(A.nnz, dtype=bool)
    kept[order] = before[:-1] - begins[row] < share * total[row]
    A = A.copy()
    A.data[~kept] = 0.0
    A.eliminate_zeros()
    return A


def expand_duplicates(W, point_of):
    """Return the affinity of all rows, given that of the distinct points.

    ``point_of`` (n,) is the index of the point that each row equals. Duplicates have
    the neighbors of their point, and the largest affinity to each other.
    """
    n = len(point_of)
    multiplicity = np.bincount(point_of, minlength=W.shape[0])
    n_entries = int(
        multiplicity @ (W != 0).astype(float) @ multiplicity
        + multiplicity @ multiplicity
    )
    check_memory(24 * n_entries, "The affinity of all points", "Use fewer points.")
    own = sparse.diags_array((multiplicity > 1) * (W.max() if W.nnz else 1.0))
    csr = np.ones(n), point_of, np.arange(n + 1)
    indicator = sparse.csr_array(csr, shape=(n, W.shape[0]))
    W = sparse.csr_array(indicator @ (W + own) @ indicator.T)
    W.setdiag(0.0)
    W.eliminate_zeros()
    return W
