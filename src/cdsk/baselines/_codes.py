# SPDX-License-Identifier: BSD-3-Clause
"""Points as sparse combinations of others (tests/test_baselines_l1_graph.py).

A code is a pair: the indices of some points and their coefficients.
"""

import numpy as np
from scipy import sparse

from cdsk._runtime import check_memory
from cdsk._warn import warn

# Atoms that join at a time, and how often some may.
_JOIN, _MOST_ROUNDS = 8, 10**4
# Added to the diagonal of Gram matrices: one minimiser, whatever the atoms.
_RIDGE = 1e-10
# By how much an atom that is left out may violate optimality: a part of its cost, and
# of the diagonal of Gram matrices.
_VIOLATION, _ROUNDING = 1e-6, 1e-12
# Numbers of a product that is made at a time, between two chances for Ctrl-C.
_PART = 2**24

NO_CODE = np.empty(0, dtype=np.intp), np.empty(0)


def gram_of(X):
    """Inner products of the rows of X."""
    n, d = X.shape
    check_memory(8 * n * n, "The Gram matrix of all points", "Use fewer points.")
    gram = np.empty((n, n))
    step = max(1, _PART // (n + d))
    for begin in range(0, n, step):
        part = slice(begin, begin + step)
        np.matmul(X[part], X.T, out=gram[part])
    return gram


def sparse_code(
    gram, linear, costs, code=NO_CODE, *, ridge=0.0, barred=(), affine=False
):
    """The code a of least 1/2 a'(G + ridge I)a - linear'a + sum_j costs_j |a_j|.

    Coefficients of ``barred`` atoms are 0, and all of them sum to 1 if ``affine``;
    ``code`` is a first guess, which then must do so as well.

    With the signs of a given, the best a solves a linear system. Atoms leave as they
    come to zero on the way to it. Then those of all others join that violate the
    conditions of optimality most, until there is none (an active-set method, as that of
    Lee, Battle, Raina & Ng, 2007). Coordinate descent takes 10^5 passes and more where
    atoms are nearly parallel.
    """
    costs = np.broadcast_to(costs, len(gram))
    (atoms, a), barred, level = code, list(barred), 0.0
    signs = np.sign(a)
    for _ in range(_MOST_ROUNDS):
        while len(atoms):
            best, level = _with_signs(gram, linear, costs, atoms, signs, ridge, affine)
            turned = best * signs <= 0
            if not turned.any():
                a = best
                break
            is_new = a == 0
            leaves = turned & is_new
            if not leaves.any():
                steps = np.full(len(atoms), np.inf)
                steps[turned] = a[turned] / (a[turned] - best[turned])
                leaves = steps == steps.min()
                a = a + steps.min() * (best - a)
            elif (leaves == is_new).all():
                # the first, if alone, has the right sign but for rounding
                first = np.argmax(is_new)
                if is_new.sum() == 1:
                    barred.append(atoms[first])
                else:
                    leaves[first] = False
            atoms, a, signs = atoms[~leaves], a[~leaves], signs[~leaves]
        slope = linear - a @ gram[atoms] - level
        excess = np.abs(slope) - costs
        excess[barred] = excess[atoms] = 0.0
        new = np.flatnonzero(excess > _VIOLATION * costs + _ROUNDING)
        if not len(new):
            break
        new = new[np.argsort(-excess[new], kind="stable")[:_JOIN]]
        atoms = np.concatenate([atoms, new])
        a = np.concatenate([a, np.zeros(len(new))])
        signs = np.concatenate([signs, np.sign(slope[new])])
    else:
        warn(
            f"A sparse code did not converge in {_MOST_ROUNDS} rounds: a condition of "
            f"optimality is violated by {excess.max():.1e}.",
        )
    used = a != 0
    return atoms[used], a[used]


def _with_signs(gram, linear, costs, atoms, signs, ridge, affine):
    """The best coefficients of atoms as if those were their signs, and a multiplier."""
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


def matrix_of(codes):
    """A CSR array with a code per row."""
    ends = np.cumsum([0, *(len(atoms) for atoms, _ in codes)])
    atoms, values = (np.concatenate(part) for part in zip(*codes, strict=True))
    matrix = sparse.csr_array((values, atoms, ends), shape=(len(codes), len(codes)))
    matrix.sort_indices()
    return matrix


def with_most_of_its_mass(A, share):
    """Of each row of a CSR array the largest entries that have a share of its |.|_1."""
    sizes = np.abs(A.data)
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    order = np.lexsort((-sizes, row))
    before = np.concatenate([[0.0], np.cumsum(sizes[order])])
    begins = before[A.indptr[:-1]]
    total = before[A.indptr[1:]] - begins
    # an entry stays if those before it have less than the share
    kept = np.empty(A.nnz, dtype=bool)
    kept[order] = before[:-1] - begins[row] < share * total[row]
    A = A.copy()
    A.data[~kept] = 0.0
    A.eliminate_zeros()
    return A


def between_rows(W, point_of):
    """The affinity of all rows from that of the points that they are.

    Copies of a point have its neighbours, and the largest affinity to each other.
    """
    n = len(point_of)
    copies = np.bincount(point_of, minlength=W.shape[0])
    n_entries = int(copies @ (W != 0).astype(float) @ copies + copies @ copies)
    check_memory(24 * n_entries, "The affinity of all points", "Use fewer points.")
    own = sparse.diags_array((copies > 1) * (W.max() if W.nnz else 1.0))
    is_point = (np.ones(n), point_of, np.arange(n + 1))
    is_point = sparse.csr_array(is_point, shape=(n, W.shape[0]))
    W = sparse.csr_array(is_point @ (W + own) @ is_point.T)
    W.setdiag(0.0)
    W.eliminate_zeros()
    return W
