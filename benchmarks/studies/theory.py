# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of docs/theory.md: values of the bounds on real data.

usage: python -m benchmarks.studies.theory

Takes a quarter of an hour, mostly for cross-validation: up to 1500 fits per method and
data set.
"""

import warnings

import numpy as np
from scipy.integrate import simpson
from scipy.stats import norm
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    make_moons,
)
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

from cdsk import CDSK, gaussian_gram
from cdsk.theory import KernelDensityClassifier, generalization_bound, ise_bound


def show(name, n, b):
    """Print one line of the table of bounds."""
    print(
        f"{name:14} {n:5d} {b.n_classes:2d}  {b.margin_loss:.4f}  "
        f"{b.similarity_loss:.4f}      {b.omega_plus:.4f}  {b.omega_minus:.4f}  "
        f"{b.radius:.2f}  {b.complexity:6.3f}      {b.confidence:6.3f}  {b.total:9.3f}"
    )


def bounds():
    """Print the terms of the generalization bound after clustering.

    Also for the kernel truncated to 7 neighbors, which is indefinite, and for uniform
    weights with the true classes and with permuted ones. With the same weights and
    margins the last two terms decrease as 1 / sqrt(n), and at the best gamma the total
    is below 1 for some n.
    """
    print("\ngeneralization bound, gamma = 1, delta = 0.05")
    print(
        "data               n  c  margin  similarity  Omega+  Omega-  R     complexity"
        "  confidence      total"
    )
    rng = np.random.default_rng(0)
    data = {
        "iris": load_iris(return_X_y=True),
        "breast cancer": (
            scale(load_breast_cancer().data),
            load_breast_cancer().target,
        ),
        "digits": load_digits(return_X_y=True),
    }
    for name, (X, y) in data.items():
        n, c = len(X), len(np.unique(y))
        model = CDSK(c, bandwidth="neighbor", lam=0.3, random_state=0).fit(X)
        show(name, n, model.generalization_bound())
        near = kneighbors_graph(X, 7, include_self=True).toarray() > 0
        K = gaussian_gram(X, model.bandwidth_)
        S = K * (near | near.T)
        show("  7 neighbors", n, generalization_bound(S, model.labels_, model.weights_))
        uniform = np.full(n, 1 / n)
        show("  true classes", n, generalization_bound(K, y, uniform))
        show("  permuted", n, generalization_bound(K, rng.permutation(y), uniform))
        grid = [model.generalization_bound(gamma=g) for g in np.geomspace(1e-4, 1, 41)]
        needed = [
            n * ((b.total - b.margin_loss) / (1 - b.margin_loss)) ** 2 for b in grid
        ]
        best = int(np.argmin(needed))
        print(
            f"    total < 1 from n = {needed[best]:.1e}, gamma {grid[best].gamma:.2g}"
        )
    # the best case: two classes, similarity 1 within and 0 between them
    S = np.kron(np.eye(2), np.ones((500, 500)))
    b = generalization_bound(S, np.repeat([0, 1], 500), np.full(1000, 1e-3), gamma=0.5)
    show("two cliques", 1000, b)
    print(f"    total < 1 from n = {1000 * b.total**2:.1e}")


def integrated_squared_errors():
    """Print the ISE of uniform weights for two Gaussians, and its bounds."""
    print("\nISE for 1/2 N(-m, s^2) and 1/2 N(m, s^2), 200 draws, delta = 0.05")
    print("    n  tau  m  s    ISE     bound  printed  failures: bound, printed")
    rng = np.random.default_rng(0)
    for n, tau, m, s in (
        (200, 0.3, 2, 1.0),
        (200, 0.5, 2, 0.5),
        (1000, 0.3, 2, 0.3),
        (200, 3.0, 2, 0.2),
    ):
        end = m + 8 * max(s, tau)
        grid = np.linspace(-end, end, 2001)
        r = (norm.pdf(grid, -m, s) - norm.pdf(grid, m, s)) / 2
        rows = []
        for _ in range(200):
            y = rng.integers(0, 2, n)
            x = rng.normal((2 * y - 1) * m, s)
            estimate = (1 - 2 * y) @ norm.pdf(grid, x[:, np.newaxis], tau) / n
            ise = simpson((estimate - r) ** 2, x=grid)
            b = ise_bound(x[:, np.newaxis], y, np.full(n, 1 / n), tau)
            remainder = 2 * b.tau_0 * (1 / (n - 1) + b.epsilon)
            printed = b.total - b.remainder + remainder
            rows.append((ise, b.total + simpson(r**2, x=grid), printed))
        ise, ours, printed = np.array(rows).T
        print(
            f"{n:5d} {tau:4} {m:2d} {s:3} {ise.mean():7.4f} {ours.mean():8.4f} "
            f"{printed.mean():8.4f}  {(ise > ours).mean():.2f}, "
            f"{(ise > printed).mean():.2f}"
        )


def show_support(pipeline, search, X, y):
    """Print the number of support points for default and selected parameters."""
    default = pipeline.fit(X, y)[-1]
    chosen = search.fit(X, y).best_estimator_[-1]
    print(
        f"             support: default {len(default.support_)}, chosen "
        f"{len(chosen.support_)} (bandwidth {chosen.bandwidth_:.2f}, lam {chosen.lam})"
    )


def classifiers():
    """Print accuracies in ten folds; parameters are selected by nested validation."""
    print("\naccuracy (standard error over 10 folds), features z-scored")
    digits = load_digits()
    two = (digits.target == 3) | (digits.target == 8)
    iris = load_iris()
    data = {
        "moons": make_moons(400, noise=0.3, random_state=0),
        "iris 1, 2": (iris.data[50:], iris.target[50:]),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits 3, 8": (digits.data[two], digits.target[two]),
        "digits": (digits.data, digits.target),
    }
    outer = StratifiedKFold(10, shuffle=True, random_state=0)
    inner = StratifiedKFold(5, shuffle=True, random_state=1)
    for name, (X, y) in data.items():
        widths = np.geomspace(0.05, 1, 6) * np.sqrt(X.shape[1])
        lams = [0.05, 0.1, 0.3, 0.5, 0.7]
        entries = {
            "uniform": (KernelDensityClassifier(), {"bandwidth": widths}),
            "learned": (
                KernelDensityClassifier(weights="learned"),
                {"bandwidth": widths, "lam": lams},
            ),
            "SVC": (SVC(), {"gamma": 1 / (2 * widths**2), "C": [0.1, 1, 10, 100]}),
        }
        print(f"{name} (n = {len(X)}, d = {X.shape[1]})")
        for label, (model, grid) in entries.items():
            step = type(model).__name__.lower()
            pipeline = make_pipeline(StandardScaler(), model)
            search = GridSearchCV(
                pipeline, {f"{step}__{k}": v for k, v in grid.items()}, cv=inner
            )
            text = []
            for estimator in (pipeline, search):
                scores = cross_val_score(estimator, X, y, cv=outer)
                error = scores.std(ddof=1) / np.sqrt(len(scores))
                text.append(f"{scores.mean():.3f} ({error:.3f})")
            print(f"    {label:8} default {text[0]}  chosen {text[1]}", flush=True)
            if label == "learned":
                show_support(pipeline, search, X, y)


def main():
    bounds()
    integrated_squared_errors()
    with warnings.catch_warnings():
        # classes without weight, at some points of the grid
        warnings.simplefilter("ignore", UserWarning)
        classifiers()


if __name__ == "__main__":
    main()
