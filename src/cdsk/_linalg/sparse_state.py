# SPDX-License-Identifier: BSD-3-Clause
"""Sparse attributes are saved as their arrays (tests/test_models.py).

So a model holds no types but ours and those that every way of saving trusts.
"""

from scipy import sparse


class SparseState:
    """For objects whose attributes may be CSR arrays."""

    def __getstate__(self):
        """Attributes, and under one name the arrays of those that are sparse."""
        state = {n: v for n, v in vars(self).items() if not sparse.issparse(v)}
        state["_sparse"] = {
            name: (value.data, value.indices, value.indptr, list(value.shape))
            for name, value in vars(self).items()
            if sparse.issparse(value)
        }
        return state

    def __setstate__(self, state):
        """Take what ``__getstate__`` gave."""
        state = dict(state)
        for name, (*arrays, shape) in state.pop("_sparse").items():
            state[name] = sparse.csr_array(tuple(arrays), shape=tuple(shape))
        vars(self).update(state)
