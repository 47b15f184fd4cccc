# SPDX-License-Identifier: BSD-3-Clause
"""Embedding -> labels, numbered in the order in which clusters first appear."""

import warnings

import numpy as np
from scipy.linalg import qr, svd
from sklearn import cluster

from cdsk._runtime import one_blas_thread
from cdsk._validation import check_random_state

_MOST_TURNS = 50

# Points on which the starts of k-means are tried, and for every cluster. Measured, 10^6
# points and 10 clusters: 1.3 s instead of 11 s for the same labels.
_SAMPLE = 50_000
_SAMPLE_PER_CLUSTER = 100

METHODS = ("kmeans", "cluster_qr", "discretize", "auto")


def assign_labels(vectors, method, *, n_init, random_state, kernel=None, masses=None):
    """Labels of the points whose coordinates are the columns of ``vectors`` (c, n).

    A point counts as much as its mass, 1 if they are None.
    "auto" keeps the labels with the smallest normalised cut in the graph of ``kernel``,
    of all three ways.
    """
    ways = {
        "kmeans": lambda: _kmeans(vectors, n_init, random_state, masses),
        "cluster_qr": lambda: _cluster_qr(vectors, masses),
        "discretize": lambda: np.argmax(rotated_to_axes(vectors, masses), axis=0),
    }
    if method == "auto":
        found = [way() for way in ways.values()]
        labels = min(found, key=lambda labels: np.mean(cut_ratios(kernel, labels)))
    else:
        labels = ways[method]()
    return in_order_of_appearance(labels)


class OneThreadKMeans(cluster.KMeans):
    """``sklearn.cluster.KMeans`` on the calling thread, whatever OpenMP offers.

    It meets n x c numbers here, a millisecond of work per pass, and waits for all its
    threads at the end of each. Where processors are shared such a wait costs a slice of
    the scheduler: measured, 500 points with four other busy processes on two
    processors, 2 s for ten starts in place of 40 ms. On idle ones a second thread saves
    next to nothing. Limits of OpenMP by threadpoolctl are no way out: they stay with
    the thread that set them first.
    """

    @property
    def _n_threads(self):
        return 1

    @_n_threads.setter
    def _n_threads(self, value):
        # fit() sets it to all threads. Should that name change, so do the threads used
        # and nothing else.
        pass


def _kmeans(vectors, n_init, random_state, masses):
    """The best of several starts, of many points on a sample, finished on all."""
    points = np.ascontiguousarray(vectors.T)
    c, n = vectors.shape
    rng = check_random_state(random_state)
    # It limits BLAS by itself; two threads at once would restore each other's limits.
    with one_blas_thread(), warnings.catch_warnings():
        # of embeddings that have fewer places than clusters, as bad kernels lead to:
        # the estimator says it of the one that was chosen
        warnings.filterwarnings("ignore", "Number of distinct clusters")
        if n > max(_SAMPLE, _SAMPLE_PER_CLUSTER * c):
            size = max(_SAMPLE, _SAMPLE_PER_CLUSTER * c)
            sample = np.sort(rng.choice(n, size, replace=False))
            theirs = None if masses is None else masses[sample]
            start = OneThreadKMeans(c, n_init=n_init, random_state=rng)
            start.fit(points[sample], sample_weight=theirs)
            model = OneThreadKMeans(c, init=start.cluster_centers_, n_init=1)
        else:
            model = OneThreadKMeans(c, n_init=n_init, random_state=rng)
        return model.fit_predict(points, sample_weight=masses)


def _cluster_qr(vectors, masses):
    """Damle, Minden & Ying (2019): pivoted QR picks one representative per cluster.

    The polar factor of the representatives' rows rotates the embedding onto the axes.
    """
    return np.argmax(np.abs(rotation_to_axes(vectors, masses).T @ vectors), axis=0)


def rotation_to_axes(vectors, masses=None):
    """Orthogonal R such that the points of the clusters in R' vectors lie near axes.

    Points of unit length are all equally good as the first pivot, and rounding would
    choose. So those in the direction of many others are made a very little longer.
    """
    masses = np.ones(vectors.shape[1]) if masses is None else masses
    spread = (vectors * (masses / masses.sum())) @ vectors.T
    longer = 1.0 + 1e-9 * np.einsum("ln,lm,mn->n", vectors, spread, vectors)
    _, _, pivots = qr(vectors * longer, mode="economic", pivoting=True)
    left, _, right = svd(vectors[:, pivots[: len(vectors)]])
    return left @ right


def rotated_to_axes(vectors, masses=None):
    """The embedding (c, n) in the basis whose axes its points lie nearest to.

    Yu & Shi (2003): each point is assigned to its largest entry, and the basis is
    turned so that points lie as near as possible to their axes, until no assignment
    changes. The start is that of ``cluster_qr``.
    """
    heavy = vectors if masses is None else vectors * masses
    turned, labels = rotation_to_axes(vectors, masses).T @ vectors, None
    for _ in range(_MOST_TURNS):
        old, labels = labels, np.argmax(turned, axis=0)
        if old is not None and (labels == old).all():
            break
        members = labels == np.arange(len(vectors))[:, np.newaxis]
        left, _, right = svd(np.einsum("ln,yn->ly", heavy, members.astype(float)))
        turned = (left @ right).T @ vectors
    return turned


def cut_ratios(kernel, labels):
    """cut(A, rest) / vol(A) of every cluster A in the graph of K, without weights.

    Their sum is the normalised cut. That of a cluster without any similarity is 1.
    """
    members = (labels == np.unique(labels)[:, np.newaxis]).astype(np.float64)
    inside = np.sum(members * kernel.product(members), axis=1)
    volume = np.sum(members * kernel.row_sums, axis=1)
    cut = volume - inside
    if kernel.loops is not None:
        volume += np.sum(members * kernel.loops, axis=1)
    return np.divide(cut, volume, out=np.ones(len(volume)), where=volume > 0)


def in_order_of_appearance(labels):
    """The same clusters, numbered in the order in which they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # of every cluster, by its first point
    return rank[inverse].astype(np.int64, copy=False)
