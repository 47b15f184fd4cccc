# SPDX-License-Identifier: BSD-3-Clause
"""Data -> their representation: as they are, or PCA-whitened.

Whitening gives every principal component the same variance. It lifts what few
components hide (faces under changing light) and blurs what they show (digits). Which of
the two the data need is told by a graph that is comparable between representations:
the unweighted one of the 5 nearest neighbours has the same number of edges everywhere.
It is cut into c clusters, and the mean of their normalised cuts says how well that
went. The whitened form is taken if it lowers this cut by more than a tenth.
"""

import numbers
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cdsk._block import combine, inner
from cdsk._kernels.neighbours import Neighbours
from cdsk._kernels.sparse import NeighbourGraph
from cdsk._linalg.dense import largest_eigenpairs
from cdsk._steps.embedding import spectral_step
from cdsk._steps.labels import assign_labels, cut_ratios
from cdsk._validation import check_extent

# Numbers of components that are tried, and the fewest features for which they are: with
# fewer, whitening could only drop features or keep nearly all of them.
COMPONENTS = (20, 50, 100, 200)
LEAST_FEATURES = 60

# The cut must fall to this fraction.
PAYS = 0.9

_GRAPH_NEIGHBOURS = 5
_STARTS = 3  # of k-means

# The decision is made on so many evenly spaced points at most.
_LARGEST_SAMPLE = 2000


@dataclass(frozen=True)
class Representation:
    """How the data are represented.

    Attributes
    ----------
    n_components : int or None
        Components of the whitened data; None: as they are.
    cuts : dict
        Mean normalised cut of every representation that was tried, by its number of
        components (0: as they are); empty if none was.
    spread : ndarray of shape (n_features,) or None
        Standard deviation of every feature of the data as they are; None for a
        precomputed kernel.
    """

    n_components: int | None
    cuts: dict[int, float]
    spread: NDArray[np.float64] | None = None
    mean: NDArray[np.float64] | None = None
    directions: NDArray[np.float64] | None = None

    def transform(self, X, n_threads=1):
        """X in this representation, in its own dtype."""
        if self.directions is None:
            return X
        # not by BLAS, which would round a point alone otherwise than one among many
        centred = np.ascontiguousarray((X - self.mean).T)
        whitened = combine(self.directions, centred, n_threads)
        return np.ascontiguousarray(whitened.T, dtype=X.dtype)


def check_whiten(whiten):
    """Refuse anything but a truth value, "auto" or a number of components."""
    number = isinstance(whiten, numbers.Integral) and int(whiten) >= 1
    truth = isinstance(whiten, bool | np.bool_)
    if not (number or truth or (isinstance(whiten, str) and whiten == "auto")):
        raise ValueError(
            'whiten must be True, False, "auto" or a number of components of at least '
            f"1; got {whiten!r}."
        )


def represent(X, n_clusters, whiten, rng, n_threads):
    """The ``Representation`` that ``whiten`` (bool, number or "auto") asks for."""
    representation = _represent(X, n_clusters, whiten, rng, n_threads)
    # data that are too large are refused where squares are needed
    with np.errstate(over="ignore", invalid="ignore"):
        spread = X.std(axis=0, dtype=np.float64)
        spread[np.ptp(X, axis=0) == 0] = 0.0  # no rounding of the mean
    return replace(representation, spread=spread)


def _represent(X, n_clusters, whiten, rng, n_threads):
    if isinstance(whiten, str):
        return _choose(X, n_clusters, rng, n_threads)
    if not whiten:
        return Representation(None, {})
    everything = isinstance(whiten, bool | np.bool_)
    return _whitening(X, min(X.shape) if everything else whiten, n_threads)


def _choose(X, n_clusters, rng, n_threads):
    sample = X[:: -(-len(X) // _LARGEST_SAMPLE)]
    tried = [m for m in COMPONENTS if m < min(sample.shape) / 2]
    if X.shape[1] < LEAST_FEATURES or not tried or n_clusters > len(sample) // 5:
        return Representation(None, {})
    largest = _whitening(sample, tried[-1], n_threads)
    tried = [m for m in tried if m <= (largest.n_components or 0)]
    if not tried:
        return Representation(None, {})
    whitened = largest.transform(sample, n_threads)
    cuts = {0: _cut(sample, n_clusters, rng, n_threads)}
    for m in tried:
        # components are ordered, so the first m of them are the whitening to m
        cuts[m] = _cut(whitened[:, :m], n_clusters, rng, n_threads)
    best = min(tried, key=cuts.__getitem__)
    # a cut of 0 cannot be lowered
    if cuts[best] >= PAYS * cuts[0]:
        return Representation(None, cuts)
    chosen = _whitening(X, best, n_threads)
    return replace(chosen, n_components=best, cuts=cuts)


def _whitening(X, n_components, n_threads):
    """Whitening to at most so many components, fewer if the data span no more.

    Equal points span nothing and stay as they are.
    """
    check_extent(X)
    mean = X.mean(axis=0, dtype=np.float64)
    centred = X - mean
    n, d = X.shape
    # the smaller of the two Gram matrices has the same eigenvalues
    smaller = np.ascontiguousarray(centred.T if d <= n else centred)
    gram = inner(smaller, smaller, n_threads)
    values, vectors = largest_eigenpairs(gram, min(n_components, n, d))
    spanned = values > 1e-12 * max(values[0], np.finfo(float).tiny)
    m = int(spanned.sum())
    if m == 0:  # equal points
        return Representation(None, {})
    values, vectors = values[:m], vectors[:m]
    if d > n:
        by_point = np.ascontiguousarray(vectors.T / np.sqrt(values))
        vectors = combine(by_point, centred, n_threads)
    directions = np.ascontiguousarray(vectors.T * np.sqrt(n / values))
    return Representation(m, {}, mean=mean, directions=directions)


def _cut(X, n_clusters, rng, n_threads):
    """Mean normalised cut of the clusters of the neighbour graph."""
    X = np.ascontiguousarray(X)
    graph = NeighbourGraph(Neighbours(X, _GRAPH_NEIGHBOURS, n_threads=n_threads))
    kernel = graph.indicator(n_threads)
    uniform = np.full(kernel.n, 1.0 / kernel.n)
    # with uniform weights S is a multiple of K for every penalty
    embedding = spectral_step(kernel.similarity(uniform, 1.0), n_clusters, rng)
    labels = assign_labels(
        embedding.vectors, "kmeans", n_init=_STARTS, random_state=rng
    )
    return float(np.mean(cut_ratios(kernel, labels)))
