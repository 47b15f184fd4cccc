# SPDX-License-Identifier: BSD-3-Clause
"""Histograms of columns by cluster, compared with numpy.histogram."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cdsk._distributions import MAX_BARS, N_BINS, compute_distributions
from cdsk._profiles import LabeledTable


def compute(X, labels, weights=None, columns=None):
    d = X.shape[1]
    table = LabeledTable.from_checked(X, map(str, range(d)), labels, weights)
    return compute_distributions(table, list(range(d)) if columns is None else columns)


@pytest.fixture
def labels():
    return np.repeat([0, 1, -1], [50, 40, 10])


def test_numbers_are_counted_as_by_numpy(labels, rng):
    X = rng.normal(size=(100, 3))
    X[::7, 1] = np.nan
    found = compute(X, labels)
    for j in range(3):
        one, cells = found[j], X[:, j]
        edges = np.linspace(one.low, one.high, N_BINS + 1)
        assert np.nanmin(cells) == one.low
        for y, cluster in enumerate([-1, 0, 1]):
            own = cells[labels == cluster]
            clipped = np.clip(own[~np.isnan(own)], one.low, one.high)
            counts = np.histogram(clipped, edges)[0]
            np.testing.assert_allclose(one.shares[y], counts / counts.sum())
            assert one.missing[y] == np.isnan(own).mean()
        assert one.total.sum() == pytest.approx(1.0)
        assert one.total_missing == np.isnan(cells).mean()
    other = compute(sparse.csr_array(X), labels, columns=[2])
    np.testing.assert_array_equal(other[2].shares, found[2].shares)


def test_outliers_do_not_squeeze_the_others(rng):
    X = rng.normal(size=(1000, 1))
    X[5] = 1e6
    one = compute(X, np.arange(1000) % 2)[0]
    assert one.high < 5
    assert np.count_nonzero(one.total) > N_BINS / 2


def test_few_integers_have_bins_of_their_own(labels):
    X = (np.arange(100) % 5)[:, np.newaxis]
    one = compute(X, labels)[0]
    assert (one.low, one.high) == (-0.5, 4.5)
    np.testing.assert_allclose(one.total, 0.2)


def test_constant_and_empty_columns(labels):
    X = np.full((100, 2), 0.3)
    X[:, 1] = np.nan
    found = compute(X, labels)
    assert found[0].total.tolist() == [1.0]
    assert found[1].total.tolist() == [0.0]
    assert found[1].total_missing == 1.0


def test_categories_are_counted_as_by_pandas(labels, rng):
    names = np.array(list("abcdefghijkl"))
    cells = pd.Series(rng.choice(names, 100, p=np.arange(12, 0, -1) / 78), dtype=object)
    cells[::9] = None
    one = compute(pd.DataFrame({"x": cells}), labels)[0]
    counts = cells.value_counts(normalize=True)
    assert len(one.names) == MAX_BARS
    assert one.names[-1] == f"{cells.nunique() - MAX_BARS + 1} others"
    assert one.total.sum() == pytest.approx(1.0)
    for name, share in zip(one.names[:-1], one.total, strict=False):
        assert share == pytest.approx(counts[name])
    own = cells[labels == 0]
    assert one.shares[1, 0] == pytest.approx((own.dropna() == one.names[0]).mean())
    assert one.missing[1] == own.isna().mean()


def test_weights_are_numbers_of_equal_rows(labels, rng):
    frame = pd.DataFrame({"x": rng.normal(size=100), "y": rng.choice(list("ab"), 100)})
    times = rng.integers(0, 4, 100)
    rows = np.repeat(np.arange(100), times)
    weighted = compute(frame, labels, times.astype(float))
    copied = compute(frame.iloc[rows], labels[rows])
    for j in range(2):
        np.testing.assert_allclose(weighted[j].shares, copied[j].shares)
        np.testing.assert_equal(weighted[j].high, copied[j].high)


def test_extreme_numbers(labels):
    X = 1.7e308 * np.linspace(-1, 1, 100)[:, np.newaxis]
    one = compute(X, labels)[0]
    assert np.isfinite(one.total).all()
    assert np.count_nonzero(one.total) == N_BINS
