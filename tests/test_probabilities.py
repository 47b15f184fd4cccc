"""Probabilities: calibrated by votes that were left out, against their definition."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax
from sklearn import datasets

from cdsk import CDSK
from cdsk._voting import Calibration, LeaveOneOutVotes, fit_calibration

SETS = {
    "moons": (datasets.make_moons(1000, noise=0.2, random_state=0)[0], 2, {}),
    "blobs": (
        *(datasets.make_blobs(1000, 4, cluster_std=3.0, random_state=0)[0], 3),
        {"bandwidth": 2.0},
    ),
    "breast cancer": (datasets.load_breast_cancer().data, 2, {}),
    "wine": (datasets.load_wine().data, 3, {}),
    "iris": (datasets.load_iris().data, 3, {}),
}


def largest_gap(confidence, agrees, n_bins=10):
    """Mean confidence and share that agrees, in bins of equal numbers of points.

    The largest difference, in standard errors of the share if the confidence is right.
    """
    bins = np.array_split(np.argsort(confidence, kind="stable"), n_bins)
    gaps = [
        abs(confidence[rows].mean() - agrees[rows].mean())
        / np.sqrt(np.mean(confidence[rows] * (1 - confidence[rows])) / len(rows))
        for rows in bins
    ]
    return max(gaps)


@pytest.fixture(scope="module", params=SETS)
def judged(request):
    """Left-out votes of a fit, and whether they agree with its labels."""
    X, c, options = SETS[request.param]
    model = CDSK(c, random_state=0, **options).fit(X)
    votes = model._predictor.left_out.log_votes
    return request.param, model, votes, np.argmax(votes, axis=1) == model.clusters_


def test_mean_probability_is_the_share_that_agrees(judged):
    name, model, votes, agrees = judged
    left_out = model._predictor.left_out
    calibrated = left_out.calibration.predict_proba(votes, left_out.shares)
    # one of ten shares is beyond 3 standard errors once in 40 sets
    assert largest_gap(calibrated.max(axis=1), agrees) < 3
    own = model.probabilities_
    assert own.shape == model.labels_.shape
    where = np.arange(len(own)), model.clusters_
    np.testing.assert_array_equal(own, calibrated[where])
    if name == "blobs":  # plain shares of the votes are not calibrated
        assert largest_gap(softmax(votes, axis=1).max(axis=1), agrees) > 4


def drawn(rng, n, c, exponent, error, spread=4.0):
    """Log votes, and whether labels drawn by such probabilities agree with them."""
    log_votes = log_softmax(spread * rng.normal(size=(n, c)), axis=1)
    p = (1 - error) * softmax(exponent * log_votes, axis=1) + error / c
    labels = (rng.uniform(size=(n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return log_votes, np.argmax(log_votes, axis=1) == labels


@pytest.mark.parametrize("c", [2, 7])
@pytest.mark.parametrize(("exponent", "error"), [(0.5, 0.1), (1.0, 0.02), (4.0, 0.2)])
def test_exponent_and_error_are_found_again(rng, c, exponent, error):
    log_votes, agrees = drawn(rng, 20_000, c, exponent, error)
    found = fit_calibration(log_votes, agrees, np.ones(len(agrees)))
    assert found.exponent == pytest.approx(exponent, rel=0.1)
    assert found.error == pytest.approx(error, abs=0.02)


def test_what_is_learned_is_the_most_likely(rng):
    log_votes, agrees = drawn(rng, 300, 3, 2.0, 0.1)
    counts = rng.integers(1, 4, size=300).astype(float)
    found = fit_calibration(log_votes, agrees, counts)
    right, wrong = counts[agrees].sum(), counts[~agrees].sum()

    def loss(log_exponent, log_odds):
        p = softmax(np.exp(log_exponent) * log_votes, axis=1).max(axis=1)
        p = p + expit(log_odds) * (1 / 3 - p)
        target = np.where(agrees, (right + 1) / (right + 2), 1 / (wrong + 2))
        each = target * np.log(p) + (1 - target) * np.log(1 - p)
        return 0.5 * log_exponent**2 - np.sum(counts * each)

    least = loss(np.log(found.exponent), np.log(found.error / (1 - found.error)))
    grid = [loss(a, b) for a in np.linspace(-2, 3, 41) for b in np.linspace(-9, 2, 41)]
    assert least <= min(grid) + 1e-6


def test_counts_are_repetitions(rng):
    log_votes, agrees = drawn(rng, 200, 3, 1.5, 0.05)
    counts = rng.integers(1, 5, size=200)
    found = fit_calibration(log_votes, agrees, counts.astype(float))
    rows = np.repeat(np.arange(200), counts)
    repeated = fit_calibration(log_votes[rows], agrees[rows], np.ones(len(rows)))
    assert found.exponent == pytest.approx(repeated.exponent, rel=1e-4)
    assert found.error == pytest.approx(repeated.error, rel=1e-3)


def test_points_that_all_agree_do_not_end_in_certainty(rng):
    log_votes = drawn(rng, 100, 2, 1.0, 0.0)[0]
    found = fit_calibration(log_votes, np.ones(100, dtype=bool), np.ones(100))
    p = found.predict_proba(log_votes, np.ones(2))
    assert 1 < found.exponent < 50
    assert p.max() < 1


def test_votes_of_nobody_are_shares_and_empty_clusters_get_nothing():
    shares = np.array([0.5, 0.2, 0.0, 0.3])
    log_votes = np.array([[-np.inf] * 4, [0.0, -np.inf, -np.inf, np.log(2.0)]])
    p = Calibration(2.0, 0.3).predict_proba(log_votes, shares)
    np.testing.assert_array_equal(p[0], shares)
    expected = [0.7 * 1 / 5 + 0.1, 0.1, 0.0, 0.7 * 4 / 5 + 0.1]
    np.testing.assert_allclose(p[1], expected, rtol=1e-15)


def test_rows_that_do_not_count_or_hear_nobody_teach_nothing(rng):
    log_votes, agrees = drawn(rng, 120, 3, 1.0, 0.1)
    labels = np.where(agrees, 0, 1) + np.argmax(log_votes, axis=1)
    counts, shares = np.ones(120), np.full(3, 1 / 3)
    whole = LeaveOneOutVotes(log_votes[:100], labels[:100] % 3, counts[:100], shares)
    counts[100:110] = 0.0
    log_votes[110:] = -np.inf
    more = LeaveOneOutVotes(log_votes, labels % 3, counts, shares)
    assert more.calibration == whole.calibration
    assert more.label_probabilities()[-1] == shares[labels[-1] % 3]
