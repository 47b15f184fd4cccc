"""Fits of many points, whose kernel is selected on a sample of them."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer

from cdsk import CDSK, _candidate_fits, _view_fits
from cdsk._candidates import N_NEIGHBORS
from cdsk._neighbors import Neighbors
from cdsk._spanning_tree import tree_partitions


@pytest.fixture(autouse=True)
def few_points_for_a_sample(monkeypatch):
    monkeypatch.setattr(_view_fits, "_SAMPLE", 100)
    monkeypatch.setattr(_view_fits, "_SAMPLE_PER_CLUSTER", 10)


def separated(n=240):
    return make_blobs(n, 3, centers=4, cluster_std=0.5, random_state=1)


def elect(monkeypatch, name):
    """Let the candidate of this name win."""
    select = _candidate_fits.select_partition

    def select_name(names, *args, **options):
        choice = select(names, *args, **options)
        return dataclasses.replace(choice, chosen=choice.names.index(name))

    monkeypatch.setattr(_candidate_fits, "select_partition", select_name)


def test_kernel_is_selected_on_a_sample():
    X, y = separated()
    model = CDSK(4, random_state=0).fit(X)
    choice = model.choice_
    assert choice.n_sample == 100
    assert choice.sample_agreement == pytest.approx(1)
    assert len(choice.names) > 12
    assert len(model.labels_) == len(model.bandwidth_) == 240
    assert adjusted_rand_score(y, model.labels_) == 1
    assert_array_equal(model.predict(X), model.labels_)
    assert "Selected on a sample of 100 points" in str(model.report())
    assert model.report().to_dict()["kernel"]["n_sample"] == 100


@pytest.mark.parametrize("n, n_sample", [(199, None), (200, 100)])
def test_fewer_than_twice_the_sample_are_all_compared(n, n_sample):
    X, _ = separated(n)
    choice = CDSK(4, random_state=0).fit(X).choice_
    assert choice.n_sample == n_sample
    assert np.isnan(choice.sample_agreement) == (n_sample is None)


def test_many_clusters_need_a_larger_sample():
    X, _ = make_blobs(400, 3, centers=15, random_state=1)
    assert CDSK(15, random_state=0).fit(X).choice_.n_sample == 150


def test_partition_by_initial_weights(monkeypatch):
    elect(monkeypatch, "0.5 of the scales, initial")
    X, y = separated()
    model = CDSK(4, random_state=0).fit(X)
    assert len(model.history_) == 1
    assert_array_equal(model.weights_, np.full(240, 1 / 240))
    assert "0.5 of the scales" in model.kernel_
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("name", ["tree, Gini 0.3", "core tree, cut 0.25"])
def test_partition_by_a_spanning_tree_is_that_of_all_points(monkeypatch, name):
    elect(monkeypatch, name)
    X = np.random.default_rng(0).normal(size=(240, 2))
    model = CDSK(4, random_state=0).fit(X)
    expected = tree_partitions(Neighbors(X, N_NEIGHBORS), 4)[name]
    assert adjusted_rand_score(expected, model.labels_) == 1
    assert_array_equal(model.weights_, np.full(240, 1 / 240))


def test_agreement_compares_the_same_points(monkeypatch):
    """Labels of the sample are in another order than those of all points."""
    partitions, fit = [], _view_fits._fit_like_sample

    def record(sampled, rows, problem, context):
        labels = sampled.partitions[sampled.choice.chosen]
        partitions.append((problem.points.first_row[rows], labels, sampled))
        return fit(sampled, rows, problem, context)

    monkeypatch.setattr(_view_fits, "_fit_like_sample", record)
    X = np.random.default_rng(0).normal(size=(240, 2))
    model = CDSK(4, random_state=0).fit(X)
    rows, labels, sampled = partitions[0]
    of_sample = labels[sampled.problem.points.inverse]
    expected = adjusted_rand_score(of_sample, model.labels_[rows])
    assert model.choice_.sample_agreement == pytest.approx(expected)


@pytest.mark.parametrize("init", ["uniform", "sparse", "array"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_weights_of_rows_and_of_a_start(init, is_weighted):
    X, y = separated(400)
    weights = np.arange(400) % 3 if is_weighted else np.ones(400)
    if init == "array":
        init = (weights > 0) / np.count_nonzero(weights)
    model = CDSK(4, init=init, random_state=0).fit(X, sample_weight=weights)
    assert model.choice_.n_sample == 100
    assert adjusted_rand_score(y, model.labels_) == 1
    assert_array_equal(model.predict(X), model.labels_)


def test_the_same_for_any_number_of_threads():
    X = np.random.default_rng(0).normal(size=(300, 3))
    one, three = (CDSK(4, random_state=0, n_threads=t).fit(X) for t in (1, 3))
    assert_array_equal(one.labels_, three.labels_)
    assert_array_equal(one.margins_, three.margins_)


def test_sparse_points_are_sampled_too():
    X, y = separated()
    model = CDSK(4, random_state=0).fit(sparse.csr_array(X))
    assert model.choice_.n_sample == 100
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"bandwidth": "neighbor"},
        {"kernel": "cosine"},
        {"neighbors": KNeighborsTransformer(n_neighbors=10)},
    ],
)
def test_single_kernels_and_given_graphs_need_all_points(options):
    X, _ = separated()
    assert CDSK(4, random_state=0, **options).fit(X).choice_.n_sample is None


def test_report_tells_a_sample_that_misled(monkeypatch):
    compare = _view_fits.adjusted_rand_indexes
    monkeypatch.setattr(
        _view_fits, "adjusted_rand_indexes", lambda *args: compare(*args) * 0.1
    )
    X, _ = separated()
    text = " ".join(str(CDSK(4, random_state=0).fit(X).report()).split())
    assert "disagrees with that of the 100 points" in text
