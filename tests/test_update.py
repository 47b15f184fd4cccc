"""Rows that are added to a fit in blocks, and whether they differ from it."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_blobs

from cdsk import BlockCDSK
from cdsk.blocks._drift import LOW_SHARE, Drift
from cdsk.blocks._estimator import match_labels

X = make_blobs(900, 4, centers=5, cluster_std=1.5, random_state=0)[0]
OPTIONS = {"n_landmarks": 80, "random_state": 0, "n_threads": 1}


def fit(rows, **options):
    return BlockCDSK(5, **OPTIONS | options).fit(rows)


def state(model):
    landmarks = model.landmark_model_
    return (
        model.labels_,
        model.landmark_counts_,
        model.n_samples_,
        landmarks.labels_,
        landmarks.weights_,
        landmarks.embedding_,
        model.decision_function(X),
    )


def assert_same_bits(a, b):
    for first, second in zip(state(a), state(b), strict=True):
        np.testing.assert_array_equal(first, second)


def test_sums_are_those_of_all_rows():
    model = fit(X[:500]).partial_fit(X[500:700]).partial_fit(X[700:])
    np.testing.assert_array_equal(model.landmarks_, fit(X[:500]).landmarks_)
    assert model.n_samples_ == len(X)
    rows = model.representation_.transform(X)
    nearest = cdist(rows, model.landmarks_).argmin(axis=1)
    counts = np.bincount(nearest, minlength=len(model.landmarks_))
    np.testing.assert_array_equal(model.landmark_counts_, counts)


def test_any_calls_give_the_same_clusters():
    whole = fit(X[:500]).partial_fit(X[500:])
    parts = fit(X[:500]).partial_fit(X[500:501])
    parts.partial_fit([X[700:800], X[800:]]).partial_fit(X[501:700])
    order = match_labels(
        whole.landmark_model_.labels_, parts.landmark_model_.labels_, np.ones(80)
    )
    np.testing.assert_array_equal(order, parts.landmark_model_.labels_)
    for name in ("weights_", "embedding_", "margins_"):
        a, b = (getattr(m.landmark_model_, name) for m in (whole, parts))
        np.testing.assert_array_equal(a, b)
    votes = (np.sort(m.decision_function(X), axis=1) for m in (whole, parts))
    np.testing.assert_array_equal(next(votes), next(votes))


def test_the_same_rows_twice_change_nothing():
    model = fit(X, landmarks="uniform")
    again = fit(X, landmarks="uniform").partial_fit(X)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    votes = model.decision_function(X)
    np.testing.assert_array_equal(again.decision_function(X), votes)
    np.testing.assert_array_equal(again.landmark_counts_, 2 * model.landmark_counts_)
    assert again.n_samples_ == 2 * model.n_samples_


@pytest.mark.parametrize("n_threads", [1, 2])
def test_save_and_load_in_between(n_threads):
    model = fit(X[:500], n_threads=n_threads)
    loaded = pickle.loads(pickle.dumps(model))
    assert_same_bits(loaded.partial_fit(X[500:]), model.partial_fit(X[500:]))
    again = pickle.loads(pickle.dumps(model))
    assert_same_bits(again.partial_fit(X[:90]), model.partial_fit(X[:90]))


def test_a_generator_is_not_advanced_by_an_update():
    random_state = np.random.RandomState(3)
    model = fit(X[:500], random_state=random_state)
    before = random_state.get_state()[1].copy()
    model.partial_fit(X[500:])
    np.testing.assert_array_equal(random_state.get_state()[1], before)


def test_the_first_call_is_a_fit():
    assert_same_bits(BlockCDSK(5, **OPTIONS).partial_fit(X), fit(X))
    refitted = fit(X[:500]).partial_fit(X[500:]).fit(X)
    assert_same_bits(refitted, fit(X))
    assert refitted.drift_ is None


def test_clusters_keep_their_numbers():
    model = fit(X[:500])
    before = model.predict(X)
    # the order of sizes becomes another one
    largest = X[500:][model.predict(X[500:]) == 3]
    model.partial_fit(np.repeat(largest, 20, axis=0))
    assert np.mean(model.predict(X) == before) > 0.95
    assert (model.labels_ == 3).mean() > 0.95


@pytest.mark.parametrize("seed", range(20))
def test_most_counts_keep_their_labels(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 9, size=30).astype(float)
    previous = np.r_[np.arange(4), rng.integers(4, size=26)]
    labels = np.r_[np.arange(4), rng.integers(4, size=26)]
    found = match_labels(labels, previous, counts)
    # a permutation, and no swap of two labels is better
    assert len(set(zip(labels, found, strict=True))) == len(set(found)) == 4
    kept = counts[found == previous].sum()
    for a in range(4):
        for b in range(a):
            swapped = np.where(found == a, b, np.where(found == b, a, found))
            assert counts[swapped == previous].sum() <= kept
    np.testing.assert_array_equal(match_labels(found, found, counts), found)


def test_fewer_clusters_stay_consecutive():
    labels = match_labels(np.array([0, 0, 1]), np.array([0, 1, 2]), np.ones(3))
    assert sorted(set(labels.tolist())) == [0, 1]


# --- drift --------------------------------------------------------------------------


def test_drift_counts_rows_far_from_the_landmarks():
    model = fit(X[:500]).partial_fit(X[500:])
    drift = model.drift_
    rows = model.representation_.transform(X)
    distances = np.sort(cdist(rows, model.landmarks_), axis=1)[:, 6]
    nearest = cdist(rows, model.landmarks_).argmin(axis=1)
    labels = model.landmark_model_.labels_[nearest]
    np.testing.assert_array_equal(drift.n_fit, np.bincount(labels[:500], minlength=5))
    np.testing.assert_array_equal(drift.n_new, np.bincount(labels[500:], minlength=5))
    # of rows of the fit it is the 7th landmark; the scale of a landmark is the distance
    # to its 7th neighbor, capped for outliers
    scales = np.sort(cdist(model.landmarks_, model.landmarks_), axis=1)[:, 7]
    ratios = distances / scales[nearest]
    n_low = drift.low_fit.sum()
    assert n_low <= LOW_SHARE * 500
    farthest = np.sort(np.argsort(-ratios[:500])[: n_low // 2])
    assert np.all(drift.low_fit >= np.bincount(labels[farthest], minlength=5))


@pytest.mark.parametrize("n_landmarks", [80, None])
@pytest.mark.parametrize("d", [2, 30])
def test_rows_of_the_same_kind_have_not_drifted(d, n_landmarks):
    rows = make_blobs(1200, d, centers=5, cluster_std=1.5, random_state=1)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(rows[:900], n_landmarks=n_landmarks).partial_fit(rows[900:])
    assert not model.drift_.has_drifted.any()


def test_new_rows_far_from_the_landmarks_are_told():
    model = fit(X[:500])
    center = X[:500][model.labels_ == 2].mean(axis=0)
    # beyond the cluster, on the side that is away from all others
    away = center + 0.8 * (center - X.mean(axis=0))
    new = np.random.default_rng(0).normal(away, 1.5, size=(60, 4))
    y = np.bincount(model.predict(new)).argmax()
    with pytest.warns(UserWarning, match=f"of .* new rows in cluster {y}"):
        model.partial_fit(np.concatenate([X[500:], new]))
    drift = model.drift_
    assert np.flatnonzero(drift.has_drifted).tolist() == [y]
    assert drift.share_new[y] > 2 * drift.share_fit[y]
    text = " ".join(str(model.report()).split())
    assert "Update by 460 rows" in text
    assert f"Cluster {y} has drifted" in text
    assert f"Cluster {y} has drifted" in model.report()._repr_html_()
    told = model.report().to_dict()["blocks"]["drift"]
    assert told == drift.to_dict()
    assert [c["n_new"] for c in told] == drift.n_new.tolist()


def test_a_few_rows_are_no_drift():
    classes = np.zeros((1, 4), dtype=int)
    fitted, new = classes + [50, 43, 4, 3], classes + [0, 0, 1, 1]
    fitted, new = np.array([new, fitted]), np.array([new, fitted])
    drift = Drift.compare(fitted, new, np.zeros(1, dtype=int), 2)
    assert (drift.low_fit.tolist(), drift.low_new.tolist()) == ([3, 0], [1, 0])
    assert drift.share_new.tolist() == [0.5, 0.0]
    assert not drift.has_drifted.any()
    drift = Drift.compare(fitted, 20 * new, np.zeros(1, dtype=int), 2)
    assert drift.has_drifted.tolist() == [True, False]


# --- bad input ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X[:9, :3], "features"),
        (np.full((3, 4), np.inf), "infinity at row 0"),
        (np.empty((0, 4)), "at least one row"),
        ([], "empty list"),
    ],
)
def test_a_refused_update_changes_nothing(rows, message):
    model = fit(X[:500])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(rows)
    assert_same_bits(model, pickle.loads(before))


def test_interrupt_of_an_update_changes_nothing(monkeypatch):
    model, expected = fit(X[:500]), fit(X[:500])

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("cdsk.blocks._estimator.Drift.compare", interrupt)
        model.partial_fit(X[500:])
    assert_same_bits(model, expected)
    assert_same_bits(model.partial_fit(X[500:]), expected.partial_fit(X[500:]))


def test_parameters_of_the_fit_hold():
    model = fit(X[:500])
    changed = fit(X[:500]).set_params(n_clusters=3, random_state=7)
    assert_same_bits(changed.partial_fit(X[500:]), model.partial_fit(X[500:]))
    assert not hasattr(clone(model), "drift_")


def test_categories_and_missing_cells():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X[:, :2], columns=["x", "y"])
    frame["kind"] = rng.choice(["a", "b"], size=len(X))
    frame.loc[::9, "x"] = np.nan
    model = fit(frame[:500])
    new = frame[500:].copy()
    new.iloc[:3, 2] = "c"
    with pytest.warns(UserWarning, match="kind"):
        model.partial_fit(new)
    assert model.n_samples_ == len(X)
    with pytest.warns(UserWarning, match="kind"):
        np.testing.assert_array_equal(model.labels_, model.predict(new))
