import itertools
from functools import reduce

import numpy as np
import pytest

from cdsk.blocks._sample import hash_rows, merge_samples, sample_rows


def reference_key(seed, row):
    """Return splitmix64 in Python integers."""
    mask = 2**64 - 1
    z = ((row + 1) * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def sample(X, size, cuts, seed=3, backwards=False):
    ends = [0, *cuts, len(X)]
    parts = [sample_rows(X[a:b], a, seed, size) for a, b in itertools.pairwise(ends)]
    return reduce(
        lambda a, b: merge_samples(a, b, size), parts[:: -1 if backwards else 1]
    )


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1])
def test_keys(seed):
    keys = hash_rows(seed, 10**12, 50)
    assert keys.tolist() == [reference_key(seed, 10**12 + i) for i in range(50)]


def test_keys_are_distinct_and_uniform():
    keys = hash_rows(5, 0, 100_000)
    assert len(np.unique(keys)) == 100_000
    share = np.bincount((keys >> np.uint64(60)).astype(int), minlength=16) / 100_000
    # 16 boxes; six standard deviations
    assert np.abs(share - 1 / 16).max() < 6 * np.sqrt(15 / 16 / 16 / 100_000)
    assert not np.isin(hash_rows(6, 0, 1000), keys).any()


@pytest.mark.parametrize("size", [1, 20, 200, 1000])
@pytest.mark.parametrize("backwards", [False, True])
def test_same_rows_for_any_blocks(rng, size, backwards):
    X = rng.normal(size=(300, 2))
    order = np.argsort([reference_key(3, i) for i in range(300)])[:size]
    for cuts in ([], [1], [100, 200], range(1, 300), [0, 5, 5, 299]):
        found = sample(X, size, cuts, backwards=backwards)
        assert found.rows.tolist() == order.tolist()
        assert (found.points == X[order]).all()
        assert found.n_rows == 300
    smaller = found.head(10)
    assert smaller.rows.tolist() == order[:10].tolist()


def test_memory_error(rng, limit_memory):
    X = rng.normal(size=(300, 2))
    # both samples, concatenated and sorted: 2 * 300 * 2 entries
    limit_memory(9600)
    assert len(sample(X, 200, [100]).rows) == 200
    limit_memory(9599)
    with pytest.raises(MemoryError, match="The sample needs 9,600 bytes"):
        sample(X, 300, [100])


def test_key_bound(rng):
    X = rng.normal(size=(300, 2))
    first, rest = sample_rows(X[:200], 0, 3, 20), X[200:]
    bounded = sample_rows(rest, 200, 3, 20, key_bound=first.keys[-1])
    assert len(bounded.rows) < 20
    found = merge_samples(first, bounded, 20)
    assert found.rows.tolist() == sample(X, 20, [100]).rows.tolist()
