# SPDX-License-Identifier: BSD-3-Clause
"""Rules: they cover the rows they say, by trees of scikit-learn, measured honestly."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from cdsk import CDSK
from cdsk._profiles import LabeledTable
from cdsk._rules import Condition, compute_rules, round_between


def find(X, labels, weights=None, max_depth=3, min_precision=0.8):
    names = getattr(X, "columns", [f"x{j}" for j in range(np.shape(X)[1])])
    table = LabeledTable.from_checked(X, names, np.asarray(labels), weights)
    return compute_rules(table, max_depth, min_precision)


def covers(rule, frame):
    """Evaluate the conditions of a rule on a frame, by their words."""
    covered = np.ones(len(frame), dtype=bool)
    for condition in rule.conditions:
        cells = frame[condition.feature]
        is_gone = cells.isna().to_numpy()
        if condition.kind == "missing":
            fulfilled = is_gone
        elif condition.kind == "category":
            fulfilled = (cells.astype(str) == condition.category) & ~is_gone
        else:
            values = cells.to_numpy(dtype=float, na_value=np.nan)
            fulfilled = ~is_gone
            if condition.above is not None:
                fulfilled &= values > condition.above
            if condition.at_most is not None:
                fulfilled &= values <= condition.at_most
            fulfilled |= is_gone & condition.or_missing
        covered &= fulfilled != condition.is_negated
    return covered


@pytest.fixture(scope="module")
def mixed():
    """A frame of all kinds of columns, and clusters that rules describe exactly."""
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "color": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
            "count": pd.array(rng.poisson(3, n), dtype="Int64"),
            "is_new": rng.random(n) < 0.5,
        }
    )
    frame.loc[rng.random(n) < 0.3, "count"] = pd.NA
    is_red = (frame["color"] == "red").to_numpy()
    is_old, is_gone = (frame["age"] > 50).to_numpy(), frame["count"].isna().to_numpy()
    labels = np.where(is_red, np.where(is_old, 0, 1), np.where(is_gone, 2, -1))
    return frame, labels


def test_rules_are_found(mixed):
    frame, labels = mixed
    found = find(frame, labels)
    assert [rule.cluster for rule in found.rules] == [-1, 0, 1, 2]
    for rule in found.rules:
        np.testing.assert_array_equal(covers(rule, frame), labels == rule.cluster)
        # a threshold may lie a bit off in a fold
        assert min(rule.precision, rule.recall) > 0.9
        assert len(rule.conditions) == 2
        assert rule.size == np.sum(labels == rule.cluster)
    texts = found.to_frame()["rule"].tolist()
    assert {"color is not red", "count is present"} == set(texts[0].split(" and "))
    assert {"color is not red", "count is missing"} == set(texts[3].split(" and "))
    assert "color = red" in texts[1].split(" and ")
    assert "age > 50" in texts[1]


def test_missing_cells_may_belong_to_a_rule():
    values = np.array([*range(30), *[np.nan] * 10, *range(30, 60)])
    labels = np.repeat([0, 1], [40, 30])
    found = find(values[:, np.newaxis], labels)
    assert found.to_dict()["rule"].tolist() == ["(x0 <= 29 or missing)", "x0 > 29"]


def test_depth_one_is_the_split_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    found = find(X, y, max_depth=1, min_precision=0.4)
    names = [f"x{j}" for j in range(4)]
    frame = pd.DataFrame(X, columns=names)
    for rule in found.rules:
        tree = DecisionTreeClassifier(max_depth=1, random_state=0)
        tree.fit(X, y == rule.cluster)
        leaves = tree.apply(X)
        covered = covers(rule, frame)
        assert any(np.array_equal(covered, leaves == leaf) for leaf in (1, 2))


def test_measures_are_those_of_left_out_rows():
    rng = np.random.default_rng(0)
    X = np.arange(200.0)[:, np.newaxis]
    labels = (X[:, 0] + rng.normal(scale=30, size=200) > 90).astype(int)
    weights = rng.integers(1, 9, 200).astype(float)
    for rule in find(X, labels, weights, max_depth=1, min_precision=0.6).rules:
        is_member, covered = labels == rule.cluster, np.empty(200, dtype=bool)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        for train, test in folds.split(X, is_member):
            stump = DecisionTreeClassifier(max_depth=1, random_state=0)
            stump.fit(X[train], is_member[train], sample_weight=weights[train])
            covered[test] = stump.predict(X[test])
        counted = {"sample_weight": weights}
        precision = precision_score(is_member, covered, **counted)
        assert rule.precision == pytest.approx(precision)
        assert rule.recall == pytest.approx(recall_score(is_member, covered, **counted))
        assert rule.coverage == pytest.approx(np.average(covered, weights=weights))
        # those of the fit are other ones
        fitted = covers(rule, pd.DataFrame(X, columns=["x0"]))
        assert rule.precision != pytest.approx(
            precision_score(is_member, fitted, **counted)
        )


def test_precision_is_not_that_of_the_fit():
    """Deep trees separate random labels, but not those of rows that were left out."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(100, 20)), rng.integers(0, 2, 100)
    tree = DecisionTreeClassifier(max_depth=8, random_state=0).fit(X, labels)
    assert tree.score(X, labels) > 0.97
    found = find(X, labels, max_depth=8, min_precision=0.8)
    for rule in found.rules:
        assert rule.conditions == ()
        assert rule.precision < 0.75
    lines = str(found).splitlines()
    for rule, line in zip(found.rules, lines, strict=True):
        assert line == (
            f"cluster {rule.cluster}, {rule.size:.0f} rows: no rule of depth 8 reaches "
            f"precision 0.8 (best {rule.precision:.2f})"
        )
    assert found.to_dict()["rule"].tolist() == [None, None]


def test_the_best_precision_is_not_rounded_to_the_required_one():
    # 797 of 1000 rows below a threshold belong to the cluster
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 1], [797, 203, 1000])
    X = rng.random((2000, 1)) + np.repeat([0.0, 5.0], 1000)[:, np.newaxis]
    found = find(X, labels, max_depth=1, min_precision=0.8)
    best = found.rules[0].precision
    assert found.rules[0].conditions == ()
    assert 0.795 <= best < 0.8
    (told,) = re.findall(r"best ([\d.]+)", str(found).splitlines()[0])
    assert float(told) < 0.8


def test_a_required_precision_is_reached():
    X, labels = make_blobs(300, 2, centers=4, cluster_std=2.0, random_state=1)
    for precision in (0.5, 0.7, 0.9):
        for rule in find(X, labels, min_precision=precision).rules:
            assert (rule.precision >= precision) == bool(rule.conditions)


def test_weights_are_numbers_of_equal_rows(mixed):
    frame, labels = mixed
    labels = np.where(np.arange(len(labels)) % 9 == 0, 0, labels)
    times = np.random.default_rng(1).integers(0, 4, len(labels))
    repeated = np.repeat(np.arange(len(labels)), times)
    weighted = find(frame, labels, times.astype(float))
    copied = find(frame.iloc[repeated], labels[repeated])
    assert str(weighted) == str(copied)
    assert "precision" in str(weighted)


def test_order_of_rows_and_columns_does_not_matter(mixed):
    frame, labels = mixed
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(labels)), rng.permutation(4)
    assert str(find(frame.iloc[rows], labels[rows])) == str(find(frame, labels))
    other = find(frame.iloc[:, columns], labels)
    for rule in other.rules:
        np.testing.assert_array_equal(covers(rule, frame), labels == rule.cluster)


def test_needless_conditions_are_dropped():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    labels = (X[:, 1] > 0.3).astype(int)
    for rule in find(X, labels, max_depth=3).rules:
        assert [condition.feature for condition in rule.conditions] == ["x1"]
    # the first split is on x0, but its conditions add nothing
    often = (X[:, 0] > 0.5) & (rng.random(300) < 0.8)
    X[:, 1] = X[:, 1] > 0.8
    labels = ((X[:, 1] == 1) | often).astype(int)
    rule = find(X, labels, min_precision=0.95).rules[1]
    assert [condition.feature for condition in rule.conditions] == ["x1"]


def test_an_interval_is_one_condition():
    X = np.arange(90.0)[:, np.newaxis]
    labels = (np.abs(X[:, 0] - 45) < 20).astype(int)
    (_, inner) = find(X, labels).rules
    (condition,) = inner.conditions
    assert 25 <= condition.above < 26
    assert 64 <= condition.at_most < 65
    assert str(condition) == f"{condition.above:g} < x0 <= {condition.at_most:g}"


def test_large_numbers_are_not_rounded_to_single_precision():
    X = 1e9 + np.arange(60.0)[:, np.newaxis]
    labels = (np.arange(60) >= 30).astype(int)
    rule = find(X, labels).rules[1]
    np.testing.assert_array_equal(covers(rule, pd.DataFrame(X, columns=["x0"])), labels)


def test_of_many_rows_a_sample_is_used(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(5000, 2))
    labels = np.where(X[:, 0] > 0.99, 1, 0)
    monkeypatch.setattr("cdsk._rules._MAX_ROWS", 500)
    found = find(X, labels)
    small = found.rules[1]
    # of the large cluster in proportion, of the small one 50 or all
    assert found.n_used == np.sum(labels == 0) * 500 // 5000 + min(50, labels.sum())
    assert small.size == np.sum(labels)
    # rows of the small cluster are drawn more often, and count less
    assert small.coverage == pytest.approx(0.01, abs=0.005)
    assert f"By a random sample of {found.n_used} of 5000 rows." in str(found)


def test_wide_tables_are_screened():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 400))
    labels = (X[:, 321] > 0.5).astype(int)
    for rule in find(X, labels).rules:
        assert [condition.feature for condition in rule.conditions] == ["x321"]
    other = find(sparse.csr_array(np.where(X > 0.5, X, 0.0)), labels)
    assert [c.feature for c in other.rules[1].conditions] == ["x321"]


def test_too_few_rows_to_measure():
    X = np.arange(10.0)[:, np.newaxis]
    labels = np.repeat([0, 1], [9, 1])
    for y in range(2):
        line = str(find(X, labels)).splitlines()[y]
        assert line.endswith("too few different rows to measure a rule")
    assert np.isnan(find(X, np.zeros(10, dtype=int)).rules[0].precision)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 2.0, 1.0),
        (0.0, 1.0, 0.0),
        (1.2, 1.9, 1.5),
        (1.31, 1.32, 1.31),
        (-3.0, 4.0, 0.0),
        (12.34, 12.39, 12.36),
        (1999.0, 2001.0, 2000.0),
        (1e9, 1e9 + 1, 1e9),
        (0.1, np.nextafter(0.1, 1), 0.1),
        (-1e300, 1e300, 0.0),
        (3e-310, 7e-310, 3e-310),
        (1e308, 1.5e308, 1e308),
    ],
)
def test_thresholds_are_short(low, high, expected):
    found = round_between(low, high)
    assert low <= found < high
    assert found == pytest.approx(expected, rel=0.21)
    assert len(f"{found:.15g}") <= len(f"{expected:.15g}")


def test_thresholds_separate(rng):
    for exponent in range(-20, 20, 3):
        low, high = np.sort(rng.normal(size=(2, 200)), axis=0) * 10.0**exponent
        for a, b in zip(low.tolist(), high.tolist(), strict=True):
            assert a <= round_between(a, b) < b


def test_words_of_conditions():
    assert str(Condition("a", "number", above=1.5)) == "a > 1.5"
    assert str(Condition("a", "number", at_most=2.0, or_missing=True)) == (
        "(a <= 2 or missing)"
    )
    assert str(Condition("a", "category", category="x")) == "a = x"
    assert str(Condition("a", "category", category="x", is_negated=True)) == (
        "a is not x"
    )
    assert str(Condition("a", "missing", is_negated=True)) == "a is present"


def test_rules_of_a_model():
    X = make_blobs(150, 3, centers=3, random_state=0)[0]
    model = CDSK("auto", noise=0.02, random_state=0).fit(X)
    found = model.rules(pd.DataFrame(X, columns=["a", "b", "ç"]), max_depth=2)
    table = found.to_frame()
    assert table["cluster"].tolist() == np.unique(model.labels_).tolist()
    assert table["size"].sum() == 150
    assert (table["recall"][1:] > 0.7).all()
    assert model.predict(X[:9]).shape == (9,)
    new = model.rules(X[:90], labels=model.predict(X[:90]))
    assert sum(rule.size for rule in new.rules) == 90
    with pytest.raises(ValueError, match="max_depth must be an integer of at least 1"):
        model.rules(X, max_depth=0)
    with pytest.raises(ValueError, match="min_precision must be a number > 0"):
        model.rules(X, min_precision=0)
