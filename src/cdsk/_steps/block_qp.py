# SPDX-License-Identifier: BSD-3-Clause
"""The QP of the weight step where rows of Q are dear: decomposition by blocks.

    minimise    p'x + x'Qx      subject to  sum(x) = 1,  0 <= x_i <= upper

Where K is known by its products, a row of Q costs as much as a product with Q, and SMO
would ask for one or two per step. Entries of Q between a few coordinates are cheap. So
each step takes those that break the KKT conditions most, half of a block, and fills it
up with others between the bounds; SMO solves the problem for these, and one product
makes the gradient afresh, which is the certificate as well. The most violating pair is
always among them, so that the objective falls until the gap is closed (Joachims, 1999;
Lin, 2001). Few coordinates of a wide kernel end between the bounds, and a step or ten
suffice, where accelerated or spectral projected gradients take three to thirty times as
many products (docs/performance.md).
"""

import numpy as np

from cdsk import _smo
from cdsk._rows import StoredRows

# Steps of SMO in a block, per coordinate. What is missing, the next block makes.
_STEPS_PER_COORDINATE = 100

# Accuracy of a block beside that of the whole.
_FINER = 0.1


def descend_in_blocks(block, x, gradient, gradient_at, upper, tol, size, max_iter):
    """Lower the objective from x, in place, until the KKT gap is at most tol.

    ``block(indices)`` makes the entries of Q between some coordinates, ``size`` at
    most. Returns gradient, gap, number of blocks and status as ``qp.descend`` does.
    """
    n_iter, gap = 0, _smo.kkt_gap(x, gradient, upper)
    status = "converged" if gap <= tol else "max_iter"
    while gap > tol and n_iter < max_iter:
        chosen = working_set(x, gradient, upper, size)
        part, slope = x[chosen], gradient[chosen]
        _, _, n_steps = _smo.solve(
            StoredRows(block(chosen)),
            *(part, slope, upper, _FINER * tol, _STEPS_PER_COORDINATE * len(chosen)),
        )
        if n_steps == 0:
            status = "stalled"
            break
        x[chosen] = part
        gradient = gradient_at(x)
        n_iter, gap = n_iter + 1, _smo.kkt_gap(x, gradient, upper)
        status = "converged" if gap <= tol else "max_iter"
    return gradient, gap, n_iter, status


def working_set(x, gradient, upper, size):
    """Sorted indices of at most ``size`` coordinates to be improved together.

    A quarter are those of smallest gradient that can take weight, a quarter those of
    largest that can give some, the rest those that can do both.
    """
    order = np.argsort(gradient, kind="stable")
    takes, gives = (x < upper)[order], (x > 0)[order]
    quarter = max(size // 4, 1)
    low, high = order[takes][:quarter], order[gives][-quarter:]
    chosen = np.union1d(low, high)
    free = order[takes & gives]
    # nearest to the ends first: what they break is next in size
    distance = np.minimum(np.arange(len(free)), np.arange(len(free))[::-1])
    free = free[np.argsort(distance, kind="stable")]
    free = free[~np.isin(free, chosen)]
    return np.union1d(chosen, free[: size - len(chosen)])
