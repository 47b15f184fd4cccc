"""Missing cells: how many, and whether clusters are those of missing cells."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import contingency

from cdsk import CDSK
from cdsk._missing import MissingCells

RNG = np.random.RandomState(0)


def association(is_missing, labels):
    """Return the association of labels and the missing cells of one column."""
    X = np.where(is_missing, np.nan, 1.0)[:, np.newaxis]
    found = MissingCells.find(X, (), labels)
    return 0.0 if found is None else found.association[0]


def test_association_is_cramers_v_of_many_rows():
    # the correction vanishes as 1 / n
    y = RNG.randint(3, size=200_000)
    gone = RNG.rand(len(y)) < 0.1 + 0.3 * (y == 1)
    table = contingency.crosstab(gone, y).count
    expected = contingency.association(table, method="cramer")
    assert association(gone, y) == pytest.approx(expected, abs=1e-3)


def test_association_of_independent_and_equal_partitions():
    y = RNG.randint(4, size=60)
    found = [association(RNG.rand(60) < 0.3, y) for _ in range(200)]
    assert np.mean(found) < 0.1
    assert association(y == 2, np.where(y == 2, 1, 0)) == pytest.approx(1.0)
    assert association(np.zeros(60, bool), y) == 0
    assert association(y == 2, np.zeros(60, np.int64)) == 0
    # noise is left out
    noisy = np.where(np.arange(60) < 10, -1, np.where(y == 2, 1, 0))
    assert association(y == 2, noisy) == pytest.approx(1.0)


def test_counts_by_column():
    X = np.where(RNG.rand(50, 3) < [0.0, 0.2, 0.5], np.nan, 1.0)
    found = MissingCells.find(X, ["a", "b", "c"], RNG.randint(2, size=50))
    np.testing.assert_array_equal(found.count, np.isnan(X).sum(axis=0))
    assert MissingCells.find(X[:, :1], ["a"], np.zeros(50, np.int64)) is None


@pytest.fixture
def survey():
    """Return answers that one half did not give to one question."""
    n, y = 200, np.arange(200) % 2
    income = np.where(y == 1, np.nan, RNG.normal(size=n))
    return pd.DataFrame({"age": 9.0 * y + RNG.normal(size=n), "income": income})


def test_clusters_of_missing_cells_are_told(survey):
    with pytest.warns(UserWarning, match="missing cells of column 'income'"):
        model = CDSK(2, random_state=0).fit(survey)
    assert model.missing_.suspects == [1]
    assert any(
        "'income'" in warning for warning in model.report().to_dict()["warnings"]
    )
    # missing at random
    gone = RNG.rand(200) < 0.4
    model = CDSK(2, random_state=0).fit(survey.assign(income=np.where(gone, np.nan, 1)))
    assert model.missing_.suspects == []
    assert CDSK(2, random_state=0).fit(survey[["age"]]).missing_ is None


def test_report_of_a_table(survey):
    frame = survey.assign(
        income=np.where(np.arange(200) < 7, np.nan, survey["age"]),
        city=np.array(["Rome", "Oslo"])[RNG.randint(2, size=200)],
        name=[f"row {i}" for i in range(200)],
    )
    with pytest.warns(UserWarning, match="names rows"):
        model = CDSK(2, random_state=0).fit(frame)
    report = model.report()
    text = " ".join(str(report).split())
    assert "Numbers: age, income; categories: city (2); left out: name" in text
    assert "7 of 600 cells are missing (1.2%), in income (7)" in text
    data = report.to_dict()["data"]
    assert data["missing"]["count"] == {"age": 0, "income": 7, "city": 0}
    json.dumps(data)


def test_map_of_a_table():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from cdsk import plot

    frame = pd.DataFrame({"age": RNG.normal(size=60), "sex": ["f", "m"] * 30})
    ax = plot.map(CDSK(2, random_state=0).fit(frame), frame)
    assert sum(len(points.get_offsets()) for points in ax.collections) == 60
