"""Three theorems of the paper on small data; see docs/theory.md.

Run it with the package installed: python examples/theory.py
"""

import numpy as np
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import train_test_split

from cdsk import CDSK, gaussian_gram
from cdsk.theory import KernelDensityClassifier, ise_bound, normalized_cut


def clustering():
    """Return the bound on the error of the votes, and the cut with its lower bound."""
    X, _ = load_iris(return_X_y=True)
    model = CDSK(3, bandwidth="neighbor", random_state=0).fit(X)
    bound = model.generalization_bound()
    cut = normalized_cut(gaussian_gram(X, model.bandwidth_), model.labels_)
    return {
        "iris: margin loss": bound.margin_loss,
        "iris: bound on the error (vacuous above 1)": bound.total,
        "iris: normalized cut": cut.value,
        "iris: lower bound of any cut": cut.lower_bound,
    }


def classification():
    """Compare density classifiers with uniform and learned weights on new points."""
    X, y = make_moons(1000, noise=0.2, random_state=0)
    X, new_X, y, new_y = train_test_split(X, y, train_size=400, random_state=0)
    results = {}
    for weights in ("uniform", "learned"):
        model = KernelDensityClassifier(weights=weights).fit(X, y)
        results[f"moons: accuracy, {weights} weights"] = model.score(new_X, new_y)
        results[f"moons: fraction of support points, {weights}"] = len(
            model.support_
        ) / len(X)
    bound = ise_bound(X, y, np.full(len(X), 1 / len(X)), 0.3)
    results["moons: bound on the ISE, without int r^2"] = bound.total
    return results


if __name__ == "__main__":
    for name, value in {**clustering(), **classification()}.items():
        print(f"{name:52s}{value:8.3f}")
