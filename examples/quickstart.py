"""CDSK on two data sets of scikit-learn.

Run it with the package installed: python examples/quickstart.py
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from cdsk import CDSK


def accuracy(truth, labels):
    """Return the fraction of points in the class matched to their cluster."""
    table = contingency_matrix(truth, labels)
    return table[linear_sum_assignment(table, maximize=True)].sum() / len(truth)


def breast_cancer():
    """Compare learned and uniform weights on data with outliers."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    seventh = NearestNeighbors(n_neighbors=7).fit(X).kneighbors()[0][:, -1]
    options = {"bandwidth": 0.5 * seventh.mean(), "lam": 0.2, "random_state": 0}
    learned = CDSK(2, **options).fit(X)
    uniform = CDSK(2, max_iter=0, **options).fit(X)
    return {
        "accuracy, learned weights": accuracy(y, learned.labels_),
        "accuracy, uniform weights": accuracy(y, uniform.labels_),
    }


def digits():
    """Score default settings, and compare predictions with labels."""
    X, y = load_digits(return_X_y=True)
    model = CDSK(n_clusters=10, random_state=0).fit(X)
    return {
        "NMI, default settings": normalized_mutual_info_score(y, model.labels_),
        "predict(X) equals labels_": np.mean(model.predict(X) == model.labels_),
    }


if __name__ == "__main__":
    for name, results in (("breast cancer", breast_cancer()), ("digits", digits())):
        for score, value in results.items():
            print(f"{name:15s}{score:28s}{value:.3f}")
