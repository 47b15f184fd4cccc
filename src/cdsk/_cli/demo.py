# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration: four methods on two data sets, a table and a picture.

Digits are scikit-learn's bundled images. The noisy moons are two half circles of 300
points each among 60 points scattered evenly over the picture, which belong to neither
and are not scored. Everything runs with its defaults; scikit-learn's spectral
clustering, whose default bandwidth has the unit of the data, gets half the mean
distance to the 7th neighbour.
"""

import time
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from cdsk._estimator import CDSK
from cdsk._kernels.bandwidth import bandwidth_from_data

NOISE = -1

_KMEANS, _SPECTRAL = "k-means", "spectral (scikit-learn)"
_UNIFORM, _CDSK = "CDSK, uniform weights", "CDSK"


def run(picture=None):
    """Print the table, and write the picture if a path is given for it.

    Without matplotlib there is no picture, which is no error.
    """
    missing = None
    if picture is not None:
        from cdsk.plot._files import check_picture

        try:
            check_picture(picture)
        except ImportError as error:
            missing = error
    moons, truth = noisy_moons()
    print(_row("data", "method", "accuracy", "NMI", "ARI", "seconds"))
    _compare("digits", *digits())
    models = _compare("noisy moons", moons, truth)
    print(
        "\nNoise points are not scored. All methods use their defaults, but for the "
        "bandwidth of\nscikit-learn's spectral clustering: half the mean distance to "
        "the 7th neighbour."
    )
    if missing is not None:
        print(f"No picture was made. {missing}")
    elif picture is not None:
        _draw(picture, models, moons, truth)
        print(f"Picture: {picture}")


def digits():
    """1797 images of 8 x 8 pixels and their digits."""
    return load_digits(return_X_y=True)


def noisy_moons(seed=0):
    """Two moons of 300 points, and 60 of uniform noise with the label ``NOISE``."""
    X, y = make_moons(600, noise=0.07, random_state=seed)
    rng = np.random.default_rng(seed)
    noise = rng.uniform((-1.5, -1.0), (2.5, 1.5), (60, 2))
    return np.concatenate([X, noise]), np.concatenate([y, np.full(60, NOISE)])


def scores(truth, labels):
    """Accuracy under the best matching of clusters to classes, NMI and ARI."""
    known = truth != NOISE
    truth, labels = truth[known], labels[known]
    counts = contingency_matrix(truth, labels)
    matched = counts[linear_sum_assignment(counts, maximize=True)].sum()
    return (
        matched / len(truth),
        normalized_mutual_info_score(truth, labels),
        adjusted_rand_score(truth, labels),
    )


def _compare(name, X, truth):
    """Fit and score every method; return the fitted models by name."""
    k = len(np.unique(truth[truth != NOISE]))
    gamma = 0.5 / bandwidth_from_data(X, "neighbour") ** 2
    models = {
        _KMEANS: KMeans(k, n_init=10, random_state=0),
        _SPECTRAL: SpectralClustering(k, gamma=gamma, random_state=0),
        _UNIFORM: CDSK(k, max_iter=0, random_state=0),
        _CDSK: CDSK(k, random_state=0),
    }
    for method, model in models.items():
        began = time.perf_counter()
        with warnings.catch_warnings():
            # Scattered points have hardly any neighbours: that is what is shown here.
            warnings.filterwarnings("ignore", "Graph is not fully connected")
            warnings.filterwarnings("ignore", ".* have no similarity to any cluster")
            model.fit(X)
        seconds = time.perf_counter() - began
        three = (f"{score:.3f}" for score in scores(truth, model.labels_))
        print(_row(name, method, *three, f"{seconds:.2f}"))
    return models


def _row(data, method, *numbers):
    return f"{data:<13}{method:<25}" + "".join(f"{number:>9}" for number in numbers)


def _draw(path, models, X, truth):
    from matplotlib.figure import Figure

    from cdsk.plot import scatter

    panels = {
        _KMEANS: ("k-means", ""),
        _SPECTRAL: ("Spectral clustering (scikit-learn)", ""),
        _CDSK: ("CDSK", " (hollow points carry no weight)"),
    }
    figure = Figure(figsize=(10.5, 2.75), layout="constrained")
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True)
    for ax, (method, (title, note)) in zip(axes, panels.items(), strict=True):
        model = models[method]
        scatter(model, X, ax=ax, title=title, boundaries=method == _CDSK)
        accuracy = scores(truth, model.labels_)[0]
        ax.set(xlabel=f"accuracy {accuracy:.2f}{note}", ylabel="", aspect="equal")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    figure.savefig(path, dpi=150)
