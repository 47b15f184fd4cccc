import itertools
import pickle
from functools import reduce

import numpy as np
import pytest

from cdsk._blocks.candidates import FACTORS
from cdsk._blocks.gram import MOST_ROWS, check_rows, gram_of_block, merge_grams
from cdsk._blocks.landmarks import NEAREST, ONE, Landmarks
from cdsk._choices.representation import Representation

FEATURES = 3


@pytest.fixture
def state(rng):
    """What a pass has beside the block."""
    sample = rng.normal(size=(100, FEATURES)) * [1, 10, 100]
    view = Representation.fit(sample, "standardize")
    return view, Landmarks(view.transform(sample)[:40]), FACTORS


def parts(X, cuts, state):
    ends = [0, *cuts, len(X)]
    return [gram_of_block(X[a:b], *state) for a, b in itertools.pairwise(ends) if a < b]


def same(a, b):
    assert a.n_rows == b.n_rows
    assert (a.counts == b.counts).all()
    for A, B in zip(a.matrices, b.matrices, strict=True):
        assert A.dtype == B.dtype == np.int64
        for name in ("indptr", "indices", "data"):
            assert (getattr(A, name) == getattr(B, name)).all()


def test_against_dense_numpy(rng, state):
    X = rng.normal(size=(200, FEATURES)) * [1, 10, 100]
    view, landmarks, factors = state
    found = gram_of_block(X, *state)
    indices, distances = landmarks.nearest(view.transform(X))
    for factor, matrix in zip(factors, found.matrices, strict=True):
        Z = np.zeros((200, 40), dtype=object)  # whole numbers of Python
        z = landmarks.weights(indices, distances, factor)
        for i in range(200):
            Z[i, indices[i, :NEAREST]] = z[i].tolist()
        assert (matrix.toarray() == Z.T @ Z).all()
    assert (found.counts == np.bincount(indices[:, 0], minlength=40)).all()
    assert found.n_rows == 200


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_any_cut_and_any_order_of_merging(rng, state, dtype):
    X = (rng.uniform(0, 100, size=(150, FEATURES))).astype(dtype)
    whole = gram_of_block(X, *state)
    for cuts in ([1], [50, 100], range(1, 150), [149]):
        blocks = parts(X, cuts, state)
        same(whole, reduce(merge_grams, blocks))
        same(whole, reduce(merge_grams, blocks[::-1]))
        while len(blocks) > 1:  # a tree
            pairs = (
                itertools.batched(blocks, 2)
                if hasattr(itertools, "batched")
                else (blocks[i : i + 2] for i in range(0, len(blocks), 2))
            )
            blocks = [reduce(merge_grams, pair) for pair in pairs]
        same(whole, blocks[0])


def test_passes_in_another_process(rng, state):
    """What a pass needs and gives can be sent."""
    X = rng.normal(size=(60, FEATURES))
    function, sent = pickle.loads(pickle.dumps((gram_of_block, (X, *state))))
    first = pickle.loads(pickle.dumps(function(*sent)))
    same(first, gram_of_block(X, *state))
    merge = pickle.loads(pickle.dumps(merge_grams))
    same(merge(first, first), merge_grams(first, first))


def test_no_sum_overflows():
    # the largest entry: all rows at one landmark
    assert MOST_ROWS * ONE**2 < 2**63
    check_rows(MOST_ROWS)
    with pytest.raises(ValueError, match=r"at most 8,589,934,591 rows.*8,589,934,592"):
        check_rows(MOST_ROWS + 1)


def test_a_merge_checks_the_number_of_rows(rng, state):
    from dataclasses import replace

    gram = gram_of_block(rng.normal(size=(5, FEATURES)), *state)
    with pytest.raises(ValueError, match="X must have at most"):
        merge_grams(gram, replace(gram, n_rows=MOST_ROWS))
