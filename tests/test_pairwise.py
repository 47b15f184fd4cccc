"""Kernels by name and with parameters; how their range is treated."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import cosine_similarity, laplacian_kernel

import cdsk
from cdsk import CDSK


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, 3, centers=3, random_state=0)[0]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("laplacian", None),
        ("laplacian", {"gamma": 0.5}),
        ("polynomial", {"degree": 2, "coef0": 1.0}),
        ("poly", {"degree": 4}),
        ("cosine", None),
        ("sigmoid", {"gamma": 0.01}),
        ("linear", {}),
        ("chi2", {"gamma": 0.1}),
    ],
)
def test_named_kernels_fit_and_predict(blobs, name, parameters):
    X = np.abs(blobs) + 0.1 if name in ("linear", "chi2") else blobs
    model = CDSK(3, kernel=name, kernel_params=parameters, random_state=0).fit(X)
    assert model.bandwidth_ is None
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X[:20]) == model.predict(X[:20])).all()
    # only the votes of the support: one row at a time gives the same
    np.testing.assert_allclose(
        model.decision_function(X[:5]),
        np.concatenate([model.decision_function(x[np.newaxis]) for x in X[:5]]),
        rtol=1e-12,
    )


def test_a_name_equals_its_function(blobs, in_point_order):
    blobs = in_point_order(blobs)
    by_name = CDSK(
        3, kernel="laplacian", kernel_params={"gamma": 0.5}, random_state=0
    ).fit(blobs)
    by_call = CDSK(
        3, kernel=laplacian_kernel, kernel_params={"gamma": 0.5}, random_state=0
    ).fit(blobs)
    direct = CDSK(3, kernel="precomputed", random_state=0)
    direct.fit(laplacian_kernel(blobs, gamma=0.5))
    assert (by_name.weights_ == by_call.weights_).all()
    assert (by_name.weights_ == direct.weights_).all()
    other = CDSK(3, kernel="laplacian", random_state=0).fit(blobs)
    assert (other.weights_ != by_name.weights_).any()


def test_values_between_minus_one_and_one_are_mapped(blobs, in_point_order):
    blobs = in_point_order(blobs)
    named = CDSK(3, kernel="cosine", random_state=0).fit(blobs)
    mapped = CDSK(3, kernel="precomputed", random_state=0)
    mapped.fit(0.5 * (cosine_similarity(blobs) + 1))
    np.testing.assert_allclose(named.weights_, mapped.weights_, atol=1e-9)
    new = -blobs[:9]
    cosine = np.maximum(cosine_similarity(new, blobs), -1.0)  # rounding
    np.testing.assert_allclose(
        named.decision_function(new),
        mapped.decision_function(0.5 * (cosine + 1)),
        atol=1e-6,
    )
    # the cosine stays semi-definite
    assert named.n_negative_ == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "linear"}, r"Negative values in data: kernel\(X, X\) .*same a and"),
        (
            {"kernel": "laplacian", "kernel_params": {"width": 1}},
            "kernel='laplacian' has 'gamma' as kernel_params; got 'width'",
        ),
        (
            {"kernel": "rbf", "kernel_params": {"gamma": 1}},
            "kernel='rbf' has no parameters as kernel_params; got 'gamma'",
        ),
        (
            {"kernel": "cosine", "kernel_params": [1]},
            r"kernel_params must be a dict or None; got \[1\]",
        ),
        (
            {"kernel": "gauss"},
            "kernel must be one of 'rbf', 'precomputed', 'precomputed_neighbors'",
        ),
    ],
)
def test_refused(blobs, parameters, message):
    with pytest.raises(ValueError, match=message):
        CDSK(3, **parameters).fit(blobs)


def test_negative_values_of_new_points_are_refused(blobs):
    X = np.abs(blobs)
    model = CDSK(3, kernel="linear", random_state=0).fit(X)
    with pytest.raises(ValueError, match="Negative values in data"):
        model.predict(-X)


def test_parameters_reach_a_callable(blobs):
    seen = []

    def kernel(A, B, width=1.0):
        seen.append(width)
        return cdsk.gaussian_rows(A, B, width)

    model = CDSK(3, kernel=kernel, kernel_params={"width": 2.0}, random_state=0)
    model.fit(blobs).predict(blobs)
    assert set(seen) == {2.0}
