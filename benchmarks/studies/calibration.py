# SPDX-License-Identifier: BSD-3-Clause
"""Calibration of the probabilities, and accuracy of the embedding of new points.

usage: python -m benchmarks.studies.calibration DATA [--cap 1000]

DATA is a folder as described in sets.py. In ten bins of equally many points, the mean
of the largest probability is compared with the fraction of points whose vote agrees
with their label: mean difference / largest difference. There are three kinds of votes:
those of the other points in the kernel of the fit, as plain shares and calibrated; and
those of ``predict_proba`` without the point itself, with the same calibration. The last
column is the distance on the unit sphere between training points and almost equal new
points in the embedding: median / largest.
"""

import argparse
import warnings

import numpy as np
from scipy.special import softmax

from benchmarks.studies import sets
from cdsk import CDSK

BINS, FEWEST = 10, 100


def gaps(p, clusters):
    """Return the mean and the largest difference of probability and agreement."""
    largest, agrees = p.max(axis=1), np.argmax(p, axis=1) == clusters
    bins = np.array_split(np.argsort(largest, kind="stable"), BINS)
    found = [abs(largest[rows].mean() - agrees[rows].mean()) for rows in bins]
    return float(np.mean(found)), float(np.max(found))


def votes_of_others(model):
    """Return the log votes of ``predict`` for training points, without their own votes.

    The nearest points with positive weight vote, except for the point itself.
    """
    votes = model._predictor.votes
    X, n = votes.neighbors.X, votes.neighbors.X.shape[0]
    k = min(votes.neighbors.k, len(votes.support) - 1)
    distances, indices = votes.index.kneighbors(X, k + 1)
    own = votes.support[indices] == np.arange(n)[:, np.newaxis]
    own[~own.any(axis=1), -1] = True  # a point without weight: drop the farthest vote
    indices, distances = (a[~own].reshape(n, k) for a in (indices, distances))
    bandwidth = votes.factor * votes.neighbors.scales[:, np.newaxis]
    exponents = votes.log_weights[indices] - distances**2 / (
        2.0 * bandwidth * votes.bandwidth[indices]
    )
    found = np.full((n, votes.n_clusters), -np.inf)
    for neighbor, exponent in zip(indices.T, exponents.T, strict=True):
        place = np.arange(n), votes.labels[neighbor]
        found[place] = np.logaddexp(found[place], exponent)
    return found


def measure(X, n_clusters):
    """Return the four pairs of numbers, (4, 2)."""
    X = np.unique(X, axis=0)
    model = CDSK(n_clusters, random_state=0).fit(X)
    left_out = model._predictor.left_out
    heard = ~np.isneginf(left_out.log_votes.max(axis=1))
    log_votes, clusters = left_out.log_votes[heard], model.clusters_[heard]
    calibrate = left_out.calibration.predict_proba
    of_points = model.clusters_[model._predictor.points.first_row]
    moved = X + 1e-9 * X.std(axis=0)
    distances = np.linalg.norm(model.transform(moved) - model.embedding_, axis=1)
    return (
        gaps(softmax(log_votes, axis=1), clusters),
        gaps(calibrate(log_votes, left_out.shares), clusters),
        gaps(calibrate(votes_of_others(model), left_out.shares), of_points),
        (float(np.median(distances)), float(distances.max())),
    )


def main():
    """Print a line for every set, then the means and the maxima."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, default=1000)
    parser.add_argument("--fewest", type=int, default=FEWEST, help="points of a set")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = "shares", "calibrated", "new points", "embedding"
    print(f"{'':32}" + "".join(f"{name:>16}" for name in columns))

    def line(name, figures):
        cells = (f"{a:.3f} / {b:.3f}" for a, b in figures)
        print(f"{name:32}" + "".join(f"{cell:>16}" for cell in cells), flush=True)

    rows = []
    for name, X, y, _ in sets.load(options.data, options.cap):
        n_clusters = len(np.unique(y[y != 0])) if "/" in name else len(np.unique(y))
        if n_clusters > 1 and len(X) >= options.fewest:
            rows.append(measure(X, n_clusters))
            line(name, rows[-1])
    line(f"mean of {len(rows)} sets", np.mean(rows, axis=0))
    line("worst", np.max(rows, axis=0))


if __name__ == "__main__":
    main()
