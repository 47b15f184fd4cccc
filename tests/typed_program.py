"""What a user may write, with the types a user may rely on.

Checked by mypy --strict and by pyright, and run: test_types.py.
"""

from typing import Any, assert_type

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import cdsk
from cdsk import CDSK, BlockCDSK, plot, theory

Labels = NDArray[np.int64]
Floats = NDArray[np.float64]


def cluster(X: Floats) -> CDSK:
    model = CDSK(n_clusters=2, random_state=0).fit(X)
    assert_type(model, CDSK)
    assert_type(model.labels_, Labels)
    assert_type(model.clusters_, Labels)
    assert_type(model.label_numbers_, Labels)
    assert_type(model.constraints_, cdsk.ConstraintCheck | None)
    assert_type(model.fit(X, must_link=[[0, 1]]), CDSK)
    assert_type(model.weights_, Floats)
    assert_type(model.embedding_, Floats)
    assert_type(model.margins_, Floats)
    assert_type(model.support_, NDArray[np.intp])
    assert_type(model.n_iter_, int)
    assert_type(model.converged_, bool)
    assert_type(model.lam_, float)
    assert_type(model.n_clusters_, int)
    assert_type(model.count_choice_, cdsk.CountChoice | None)
    assert_type(model.choice_.names, tuple[str, ...])
    assert_type(model.fit_predict(X), Labels)
    assert_type(model.predict(X), Labels)
    assert_type(model.decision_function(X), Floats)
    assert_type(model.score_samples(X), Floats)
    assert_type(model.predict_proba(X), Floats)
    assert_type(model.transform(X), Floats)
    assert_type(model.fit_transform(X), Floats)
    assert_type(model.probabilities_, Floats)
    assert_type(model.outlier_scores_, Floats)
    assert_type(model.report(), cdsk.Report)
    assert_type(model.profiles(X), cdsk.Profiles)
    assert_type(model.rules(X, max_depth=2), cdsk.Rules)
    return model


def in_blocks(X: Floats) -> None:
    model = BlockCDSK(n_clusters=2, random_state=0).fit([X[:20], X[20:]])
    assert_type(model, BlockCDSK)
    assert_type(model.labels_, Labels)
    assert_type(model.landmarks_, Floats)
    assert_type(model.landmark_model_, CDSK)
    assert_type(model.predict(X), Labels)
    assert_type(model.predict_proba(X), Floats)
    assert_type(model.decision_function(X), Floats)
    assert_type(model.transform(X), Floats)


def parts(X: Floats) -> None:
    K = cdsk.gaussian_gram(X, 1.0)
    solution = cdsk.solve_qp(K, np.ones(len(X)), 1.0)
    assert_type(solution, cdsk.QPResult)
    assert_type(solution.x, Floats)
    count = cdsk.suggest_n_clusters(X, range(2, 5), random_state=0)
    assert_type(count, cdsk.CountChoice)
    assert_type(count.n_clusters, int)
    assert_type(cdsk.select_lambda(X, 2, random_state=0).lam, float)
    assert_type(cdsk.get_include(), str)


def pictures(model: CDSK, X: Floats) -> None:
    assert_type(plot.scatter(model, X, title="clusters"), Axes)
    assert_type(plot.similarity(model), Axes)
    assert_type(plot.map(model, n_neighbors=10), Axes)
    assert_type(plot.margins(model), Axes)
    assert_type(plot.profiles(model, X, kind="strips"), Axes)
    assert_type(plot.overview(model, X), Figure)
    found = cdsk.stability(model, X, 2, n_null=2, random_state=0)
    assert_type(found, cdsk.Stability)
    assert_type(found.verdict, str)
    assert_type(found.ari, Floats)
    assert_type(plot.stability(found), Axes)
    assert_type(model.layers_, cdsk.Layers)
    assert_type(model.layers_.labels(2), Labels)
    assert_type(model.predict(X, layer=2), Labels)
    assert_type(plot.tree(model), Axes)
    assert_type(model.report(stability=found), cdsk.Report)


def theorems(model: CDSK, X: Floats) -> None:
    bound = model.generalization_bound()
    assert_type(bound, theory.GeneralizationBound)
    assert_type(bound.total, float)
    K = cdsk.gaussian_gram(X, 1.0)
    assert_type(theory.normalized_cut(K, model.labels_).value, float)
    classifier = theory.KernelDensityClassifier().fit(X, model.labels_)
    assert_type(classifier, theory.KernelDensityClassifier)
    assert_type(classifier.predict(X), NDArray[Any])
    assert_type(classifier.predict_proba(X), Floats)
    assert_type(classifier.weights_, Floats)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + np.repeat([0.0, 8.0], 30)[:, np.newaxis]
    model = cluster(X)
    in_blocks(X)
    parts(X)
    pictures(model, X)
    theorems(model, X)


if __name__ == "__main__":
    main()
