"""What the package promises on data that scikit-learn ships."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from cdsk import CDSK


def accuracy(y, labels):
    table = contingency_matrix(y, labels)
    return table[linear_sum_assignment(-table)].sum() / len(y)


def test_learned_weights_show_their_worth_on_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    seventh = NearestNeighbors(n_neighbors=7).fit(X).kneighbors()[0][:, -1]
    options = {"bandwidth": 0.5 * seventh.mean(), "lam": 0.2, "random_state": 0}
    learned = CDSK(2, **options).fit(X)
    uniform = CDSK(2, max_iter=0, **options).fit(X)
    assert accuracy(y, learned.labels_) >= 0.92
    assert accuracy(y, uniform.labels_) <= 0.70


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X, y, CDSK(n_clusters=10, random_state=0).fit(X)


def test_digits_with_default_settings(digits):
    _, y, model = digits
    assert normalized_mutual_info_score(y, model.labels_) >= 0.76


def test_prediction_agrees_with_the_labels_of_digits(digits):
    X, _, model = digits
    assert np.mean(model.predict(X) == model.labels_) >= 0.97


def test_import_pulls_in_no_plotting_or_command_line():
    # scikit-learn itself imports what it finds of some; ours is what comes on top
    code = """
import sys
import scipy.sparse.linalg, scipy.spatial, sklearn.cluster, sklearn.neighbors
before = set(sys.modules)
import cdsk
print(*(set(sys.modules) - before))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    added = set(done.stdout.split())
    assert "cdsk._estimator" in added
    unwanted = {"cdsk._cli", "cdsk._demo", "cdsk._tables", "cdsk.plot", "argparse"}
    assert not unwanted & added
    assert not {
        name for name in added if name.split(".")[0] in ("matplotlib", "pandas")
    }
