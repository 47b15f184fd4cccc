import itertools
import pickle
from functools import reduce

import numpy as np
import pytest

from cdsk._preprocessing import Representation
from cdsk.blocks._gram import MAX_ROWS, check_n_rows, compute_gram, merge_grams
from cdsk.blocks._landmark_kernels import BANDWIDTH_FACTORS
from cdsk.blocks._landmarks import FIXED_POINT_ONE, N_NEAREST, Landmarks

FEATURES = 3


@pytest.fixture
def state(rng):
    """The arguments of a pass other than the rows."""
    sample = rng.normal(size=(100, FEATURES)) * [1, 10, 100]
    view = Representation.fit(sample, "standardize")
    return view, Landmarks(view.transform(sample)[:40]), BANDWIDTH_FACTORS


def grams_of_parts(X, cuts, state):
    ends = [0, *cuts, len(X)]
    return [compute_gram(X[a:b], *state) for a, b in itertools.pairwise(ends) if a < b]


def assert_same(a, b):
    assert a.n_rows == b.n_rows
    assert (a.counts == b.counts).all()
    assert (a.classes == b.classes).all()
    assert (a.classes.sum(axis=2) == a.counts).all()
    for A, B in zip(a.matrices, b.matrices, strict=True):
        assert A.dtype == B.dtype == np.int64
        for name in ("indptr", "indices", "data"):
            assert (getattr(A, name) == getattr(B, name)).all()


def test_against_dense_numpy(rng, state):
    X = rng.normal(size=(200, FEATURES)) * [1, 10, 100]
    view, landmarks, factors = state
    found = compute_gram(X, *state)
    indices, distances = landmarks.nearest(view.transform(X))
    for factor, matrix in zip(factors, found.matrices, strict=True):
        Z = np.zeros((200, 40), dtype=object)  # Python integers
        z = landmarks.weights(indices, distances, factor)
        for i in range(200):
            Z[i, indices[i, :N_NEAREST]] = z[i].tolist()
        assert (matrix.toarray() == Z.T @ Z).all()
    assert (found.counts == np.bincount(indices[:, 0], minlength=40)).all()
    assert found.n_rows == 200


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_any_partition_and_any_order_of_merging(rng, state, dtype):
    X = (rng.uniform(0, 100, size=(150, FEATURES))).astype(dtype)
    whole = compute_gram(X, *state)
    for cuts in ([1], [50, 100], range(1, 150), [149]):
        grams = grams_of_parts(X, cuts, state)
        assert_same(whole, reduce(merge_grams, grams))
        assert_same(whole, reduce(merge_grams, grams[::-1]))
        while len(grams) > 1:  # a tree
            pairs = (
                itertools.batched(grams, 2)
                if hasattr(itertools, "batched")
                else (grams[i : i + 2] for i in range(0, len(grams), 2))
            )
            grams = [reduce(merge_grams, pair) for pair in pairs]
        assert_same(whole, grams[0])


def test_passes_in_another_process(rng, state):
    """Arguments and results of a pass can be pickled."""
    X = rng.normal(size=(60, FEATURES))
    function, sent = pickle.loads(pickle.dumps((compute_gram, (X, *state))))
    first = pickle.loads(pickle.dumps(function(*sent)))
    assert_same(first, compute_gram(X, *state))
    merge = pickle.loads(pickle.dumps(merge_grams))
    assert_same(merge(first, first), merge_grams(first, first))


def test_no_sum_overflows():
    # the largest entry: all rows at one landmark
    assert MAX_ROWS * FIXED_POINT_ONE**2 < 2**63
    check_n_rows(MAX_ROWS)
    with pytest.raises(ValueError, match=r"at most 8,589,934,591 rows.*8,589,934,592"):
        check_n_rows(MAX_ROWS + 1)


def test_a_merge_checks_the_number_of_rows(rng, state):
    from dataclasses import replace

    gram = compute_gram(rng.normal(size=(5, FEATURES)), *state)
    with pytest.raises(ValueError, match="X must have at most"):
        merge_grams(gram, replace(gram, n_rows=MAX_ROWS))
