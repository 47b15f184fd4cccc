# SPDX-License-Identifier: BSD-3-Clause
"""``cdsk demo``: four methods on two data sets, in a table and a plot.

The data are scikit-learn's digits, and two moons of 300 points each with 60 points of
uniform noise, which are not scored. All methods use their defaults, except for the
bandwidth of scikit-learn's spectral clustering: its default depends on the unit of the
data, and is replaced by half the mean distance to the 7th neighbor.
"""

import time
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from cdsk._cdsk import CDSK
from cdsk._pairwise import estimate_bandwidth

NOISE = -1

_KMEANS, _SPECTRAL = "k-means", "spectral (scikit-learn)"
_UNIFORM, _CDSK = "CDSK, uniform weights", "CDSK"


def run(path=None):
    """Print the table, and write the plot if a path is given.

    The plot is skipped if matplotlib is not installed.
    """
    import_error = None
    if path is not None:
        from cdsk.plot._files import check_image_path

        try:
            check_image_path(path)
        except ImportError as error:
            import_error = error
    moons, truth = make_noisy_moons()
    print(_format_row("data", "method", "accuracy", "NMI", "ARI", "seconds"))
    _compare("digits", *load_images())
    models = _compare("noisy moons", moons, truth)
    print(
        "\nNoise points are not scored. All methods use their defaults, except for the "
        "bandwidth of\nscikit-learn's spectral clustering: half the mean distance to "
        "the 7th neighbor."
    )
    if import_error is not None:
        print(f"No plot was written. {import_error}")
    elif path is not None:
        _plot(path, models, moons, truth)
        print(f"Plot: {path}")


def load_images():
    """Return 1797 images of 8 x 8 pixels and their digits."""
    return load_digits(return_X_y=True)


def make_noisy_moons(seed=0):
    """Return two moons of 300 points, and 60 points of uniform ``NOISE``."""
    X, y = make_moons(600, noise=0.07, random_state=seed)
    rng = np.random.default_rng(seed)
    noise = rng.uniform((-1.5, -1.0), (2.5, 1.5), (60, 2))
    return np.concatenate([X, noise]), np.concatenate([y, np.full(60, NOISE)])


def compute_scores(truth, labels):
    """Return accuracy under the best matching of clusters to classes, NMI and ARI."""
    is_scored = truth != NOISE
    truth, labels = truth[is_scored], labels[is_scored]
    counts = contingency_matrix(truth, labels)
    matched = counts[linear_sum_assignment(counts, maximize=True)].sum()
    return (
        matched / len(truth),
        normalized_mutual_info_score(truth, labels),
        adjusted_rand_score(truth, labels),
    )


def _compare(name, X, truth):
    """Fit and score every method, and return the fitted models by name."""
    k = len(np.unique(truth[truth != NOISE]))
    gamma = 0.5 / estimate_bandwidth(X, "neighbor") ** 2
    models = {
        _KMEANS: KMeans(k, n_init=10, random_state=0),
        _SPECTRAL: SpectralClustering(k, gamma=gamma, random_state=0),
        _UNIFORM: CDSK(k, max_iter=0, random_state=0),
        _CDSK: CDSK(k, random_state=0),
    }
    for method, model in models.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            # expected for uniform noise
            warnings.filterwarnings("ignore", "Graph is not fully connected")
            warnings.filterwarnings("ignore", ".* have no similarity to any cluster")
            model.fit(X)
        seconds = time.perf_counter() - start
        scores = (f"{score:.3f}" for score in compute_scores(truth, model.labels_))
        print(_format_row(name, method, *scores, f"{seconds:.2f}"))
    return models


def _format_row(data, method, *numbers):
    return f"{data:<13}{method:<25}" + "".join(f"{number:>9}" for number in numbers)


def _plot(path, models, X, truth):
    from matplotlib.figure import Figure

    from cdsk.plot import scatter

    panels = {
        _KMEANS: ("k-means", ""),
        _SPECTRAL: ("Spectral clustering (scikit-learn)", ""),
        _CDSK: ("CDSK", " (hollow: zero weight)"),
    }
    figure = Figure(figsize=(10.5, 2.75), layout="constrained")
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True)
    for ax, (method, (title, note)) in zip(axes, panels.items(), strict=True):
        model = models[method]
        scatter(model, X, ax=ax, title=title, boundaries=method == _CDSK)
        accuracy = compute_scores(truth, model.labels_)[0]
        ax.set(xlabel=f"accuracy {accuracy:.2f}{note}", ylabel="", aspect="equal")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    figure.savefig(path, dpi=150)
