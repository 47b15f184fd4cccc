# SPDX-License-Identifier: BSD-3-Clause
"""Data -> their representation: as given, standardised, normal scores, or whitened.

Standardising puts features of other units on one scale. Normal scores do so whatever
the distribution of a feature is: its values become the normal quantiles of their ranks.
Whitening gives every principal component the same variance: it lifts what few
components hide (faces under changing light) and blurs what they show (digits).

Which of these *views* the data need is told by their partitions. At several scales the
points are clustered with uniform weights, and a view scores

    mean over pairs of scales of h_i h_j ARI_ij,

the cohesive agreement of partition.py: clusters that are there are found again at every
scale, and neighbours share them. The first view is what is taken unless another one has
PAYS times its score. Only views that mean something are compared (``_views``): one
feature of large spread makes data of one dimension, on which all scales agree, and so
do a few components.
docs/notes/2026-11-17-views.md and 2026-11-18-small.md have what else was tried.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri
from sklearn.utils.sparsefuncs import mean_variance_axis

from cdsk._block import combine, inner
from cdsk._choices.candidates import MANY_FEATURES, default_neighbours
from cdsk._choices.partition import cohesive_agreement
from cdsk._kernels.neighbours import Neighbours
from cdsk._kernels.sparse import NeighbourGraph
from cdsk._linalg.dense import largest_eigenpairs
from cdsk._nearest import order_points
from cdsk._runtime import check_memory
from cdsk._steps.eigen import ROUGH
from cdsk._steps.spectral import spectral_partition
from cdsk._validation import check_choice, check_extent, check_integer, check_points

VIEWS = ("raw", "standardize", "normal_scores", "whiten")

# With MANY_FEATURES whitening is tried to so many components, if these are fewer than
# this part of what the points can span, and no fewer than c centres span; if all are
# fewer, to those that c centres span.
COMPONENTS = (10, 20, 50, 100, 200)
_MOST_OF_SPAN = 0.7

# Below, features are standardised if the largest of their standard deviations is more
# than so many times the smallest, and with so many of them normal scores are tried. Up
# to the second number they may have one unit, and clusters far apart along a feature
# make its spread large: then the data as given compete.
UNEQUAL, OF_OTHER_UNITS = 2.0, 100.0
LEAST_FOR_SCORES = 4

# A feature whose commonest value has more than this share has no ranks to speak of.
TIED = 0.1

# How many times the score of the first view another one must have. On the sets of the
# study 1.2 to 1.5 decide otherwise about five of 138, which gain as much as they lose.
PAYS = 1.25

# How views are compared: bandwidths, and most points. With few features as many points
# as the study had, and three scales, which chose alike there. A sample of a large set
# may mislead, as more points are nearer and whitened to few components they always are:
# the view that is best on it must be so again on as many points as this takes seconds.
SCALES = tuple(2.0 ** (-0.5 * i) for i in range(2, 6))
_FEW_SCALES = SCALES[:3]
_SAMPLE, _SAMPLE_OF_MANY, _MOST_POINTS = 800, 2000, 20_000
_STARTS = 3  # of k-means


@dataclass(frozen=True)
class Representation:
    """How the data are represented.

    Attributes
    ----------
    name : {"raw", "standardize", "normal_scores", "whiten"}
        The view.
    n_components : int or None
        Components of the whitened data, None for other views.
    scores : dict
        Cohesive agreement of every view that was compared, by its name, "whiten 20" for
        20 components; the first is taken unless another has 1.25 times its score. Those
        two have been compared on up to 20 000 points, others on a sample of at most
        2000. Empty if there was nothing to compare.
    spread : ndarray of shape (n_features,) or None
        Standard deviation of every feature of the data as they are; None for a
        precomputed kernel.
    """

    name: str = "raw"
    n_components: int | None = None
    scores: dict[str, float] = field(default_factory=dict)
    spread: NDArray[np.float64] | None = field(default=None, repr=False)
    # of the features; a scale is infinite where nothing varies
    mean: NDArray[np.float64] | None = field(default=None, repr=False)
    scale: NDArray[np.float64] | None = field(default=None, repr=False)
    # of the components (n_features, n_components)
    directions: NDArray[np.float64] | None = field(default=None, repr=False)
    # for every feature its values and their normal scores; None: it is standardised
    ranks: tuple[tuple[NDArray[np.float64], NDArray[np.float64]] | None, ...] = field(
        default=(), repr=False
    )

    @property
    def n_varying(self):
        """Number of features that vary."""
        return 0 if self.spread is None else int(np.count_nonzero(self.spread))

    @property
    def view(self):
        """Name with the number of components, a key of ``scores``."""
        return self.name if self.directions is None else _whiten(self.n_components)

    @classmethod
    def fit(cls, X, view, *, masses=None, n_components=None, n_threads=1):
        """A view of points that count as much as their masses, 1 if they are None.

        Whitened to ``n_components``, as many as they span if that is None or more.
        Equal points span nothing and stay as they are.
        """
        if sparse.issparse(X):  # only as they are: all else would fill them
            return cls(spread=np.sqrt(mean_variance_axis(X, 0, masses)[1]))
        if view != "raw":
            check_extent(X)
        # centred ones; two for components, and for ranks values and scores
        _check_room(X.size * (2 if view in ("whiten", "normal_scores") else 1))
        # data that are too large are refused where squares are needed
        with np.errstate(over="ignore", invalid="ignore"):
            mean, spread = _moments(X, masses)
        common = {"spread": spread, "mean": mean}
        if view == "whiten":
            m = min(X.shape) if n_components is None else n_components
            directions = _directions(X - mean, masses, m, n_threads)
            if directions.shape[1]:
                return cls(view, directions.shape[1], directions=directions, **common)
        elif view != "raw":
            # what does not vary stays 0
            common["scale"] = np.where(spread > 0, spread, np.inf)
            if view == "normal_scores":
                total = len(X) if masses is None else masses.sum()
                common["ranks"] = tuple(_ranks(x, masses, total) for x in X.T)
            return cls(view, **common)
        return cls(spread=spread)

    def transform(self, X, n_threads=1):
        """X in this representation, in its own dtype."""
        X = check_points(X)
        if self.spread is not None and X.shape[1] != len(self.spread):
            raise ValueError(
                f"X has {X.shape[1]} features, but the representation is that of "
                f"{len(self.spread)} features; expected as many."
            )
        return self.of_checked(X, n_threads)

    def of_checked(self, X, n_threads=1):
        """``transform`` of points that have been checked."""
        if self.directions is not None:
            d, m = self.directions.shape
            _check_room(len(X) * (d + max(d, 2 * m)))
            # not by BLAS, which would round a point alone otherwise than one among many
            centred = np.ascontiguousarray((X - self.mean).T)
            whitened = combine(self.directions, centred, n_threads)
            return np.ascontiguousarray(whitened.T, dtype=X.dtype)
        if self.scale is None:
            return X
        _check_room(X.size)
        found = X - self.mean
        found /= self.scale
        for j, ranks in enumerate(self.ranks):
            if ranks is not None:
                found[:, j] = _between(X[:, j], *ranks, self.scale[j])
        return np.ascontiguousarray(found, dtype=X.dtype)


def _check_room(n_numbers):
    check_memory(8 * n_numbers, "A view of the data", "Use fewer points.")


def check_representation(representation, n_components, rank=False):
    """Refuse what is no view, and components of nothing or of two things.

    ``rank`` says whether ``n_components`` is the rank of an approximation.
    """
    check_choice(representation, "representation", ("auto", *VIEWS))
    if n_components is not None:
        check_integer(n_components, "n_components", 1)
    whiten = representation == "whiten"
    if whiten and rank:
        raise ValueError(
            'representation="whiten" and approximation="lowrank" both have n_components'
            ", which cannot be told apart; expected one of the two, and data that were "
            "whitened beforehand."
        )
    # scikit-learn's checks of estimators set it with all else as it is: "auto"
    if n_components is not None and representation in VIEWS and not (whiten or rank):
        raise ValueError(
            'n_components is for representation="whiten" or approximation="lowrank"; '
            f"expected None for representation={representation!r}, got "
            f"{n_components!r}."
        )


def represent(
    X,
    n_clusters,
    representation,
    rng,
    n_threads,
    n_components=None,
    masses=None,
):
    """The ``Representation`` that is asked for, or that the data need ("auto")."""
    how = {"masses": masses, "n_threads": n_threads}
    if sparse.issparse(X):
        representation = "raw"
    if representation != "auto":
        how["n_components"] = n_components
        return Representation.fit(X, representation, **how)
    check_extent(X)
    spread = _moments(X, masses)[1]
    first, *others = _views(spread, n_clusters)
    scores = {}
    # of fewer points to a cluster no scale tells anything, nor do views of one cluster
    if others and 1 < n_clusters <= len(X) // 5:
        d = np.count_nonzero(spread)
        most, scales = _SAMPLE, _FEW_SCALES
        if d >= MANY_FEATURES:
            most, scales = _SAMPLE_OF_MANY, SCALES
        k = default_neighbours(len(X), d, n_clusters)
        rest = masses, n_clusters, k, scales, rng, n_threads
        scores = _compare(X, [first, *others], most, *rest)
        sure = {first} if len(X) > most else {first, *others}
        while (best := _best(scores, first)) not in sure:
            scores |= _compare(X, [first, best], _MOST_POINTS, *rest)
            sure.add(best)
    best = _best(scores, first)
    if m := _n_components(best):
        best, how["n_components"] = "whiten", m
    return replace(Representation.fit(X, best, **how), scores=scores)


def _best(scores, first):
    """The view of the largest score, if that pays."""
    best = max(scores, key=scores.__getitem__, default=first)
    return best if scores and scores[best] > PAYS * scores[first] else first


def represent_to_count(
    X, largest, representation, rng, n_threads, n_components=None, masses=None
):
    """Every ``Representation`` in which clusters are counted.

    One, unless few features may have one unit or several: then standardised and as
    given. Many features are seen as by a fit with the largest candidate.
    """
    if representation == "auto" and not sparse.issparse(X):
        check_extent(X)
        spread = _moments(X, masses)[1]
        if np.count_nonzero(spread) < MANY_FEATURES:
            how = {"masses": masses, "n_threads": n_threads}
            return [Representation.fit(X, view, **how) for view in _of_units(spread)]
    how = n_components, masses
    return [represent(X, largest, representation, rng, n_threads, *how)]


def _whiten(n_components):
    return f"whiten {n_components}"


def _n_components(view):
    """Of a whitening by its name; 0 for other views."""
    return int(view.removeprefix("whiten ")) if view.startswith("whiten ") else 0


def _of_units(spread):
    """Views that few features of these spreads have for their units, first one first.

    Clusters that lie far apart along one feature make its spread large, and to
    standardise it would move them together; so does another unit, and then the data as
    given have one dimension.
    """
    spread = spread[spread > 0]
    ratio = spread.max() / spread.min() if len(spread) else 1.0
    if ratio <= UNEQUAL:
        return ["raw"]
    return ["standardize", "raw"] if ratio <= OF_OTHER_UNITS else ["standardize"]


def _views(spread, n_clusters):
    """Names of the views that mean something, the first one first."""
    d = np.count_nonzero(spread)
    if d >= MANY_FEATURES:
        least = n_clusters - 1
        enough = [m for m in COMPONENTS if m >= least] or [least]
        return ["raw", "standardize", *map(_whiten, enough)]
    first, *as_given = _of_units(spread)
    scores = ["normal_scores"] if d >= LEAST_FOR_SCORES else []
    return [first, *scores, *as_given]


def _compare(X, views, most, masses, n_clusters, k, scales, rng, n_threads):
    """Cohesive agreement of the views that at most so many points have, by name."""
    seed = rng.randint(2**31 - 1)
    if len(X) > most:
        rows = np.random.RandomState(seed).choice(len(X), most, replace=False)
        X, masses = X[rows], None if masses is None else masses[rows]
    seen = _seen(X, masses, views, n_threads)
    # in an order that their unit has no part in, as k-means depends on it
    order = np.empty(len(X), dtype=np.int32)
    order_points(np.ascontiguousarray(seen[views[0]]), order)
    masses = None if masses is None else masses[order]
    return {
        view: _score(V[order], masses, n_clusters, k, scales, seed, n_threads)
        for view, V in seen.items()
    }


def _seen(X, masses, views, n_threads):
    """The points in every view, by name; whitenings that cannot be are left out."""
    how = {"masses": masses, "n_threads": n_threads}
    seen = {
        view: Representation.fit(X, view, **how).of_checked(X, n_threads)
        for view in views
        if not _n_components(view)
    }
    span = _MOST_OF_SPAN * min(X.shape)
    tried = [m for m in map(_n_components, views) if 0 < m < span]
    if tried:
        largest = Representation.fit(X, "whiten", n_components=max(tried), **how)
        whitened = largest.of_checked(X, n_threads)
        # components are ordered, so the first m of them are the whitening to m
        found = largest.n_components or 0
        seen |= {_whiten(m): whitened[:, :m] for m in tried if m <= found}
    return seen


def _score(X, masses, n_clusters, k, scales, seed, n_threads):
    """Cohesive agreement of the partitions of X at several scales."""
    rng = np.random.RandomState(seed)
    X = np.ascontiguousarray(X)
    neighbours = Neighbours(X, k, robust=True, n_threads=n_threads)
    graph = NeighbourGraph(neighbours, masses)
    partitions, start = [], None
    for scale in scales:
        kernel = graph.kernel(scale * neighbours.scales, n_threads)
        how = {"n_init": _STARTS, "tol": ROUGH, "start": start}
        found, labels = spectral_partition(kernel, n_clusters, rng, **how)
        start = found.solution
        partitions.append(labels)
    neighbourhood = graph.indicator(n_threads)
    return cohesive_agreement(partitions, n_clusters, neighbourhood, masses)


def _moments(X, masses):
    """Means and standard deviations of the features, 0 where nothing varies."""
    extent = np.ptp(X, axis=0).astype(np.float64)
    if masses is None:
        mean = X.mean(axis=0, dtype=np.float64)
    else:
        mean = np.sum(X * (masses / masses.sum())[:, np.newaxis], axis=0)
    unit = np.where(extent > 0, extent, 1.0)  # no square is below the range of numbers
    squares = X - mean
    squares /= unit
    np.square(squares, out=squares)
    if masses is not None:
        squares *= (masses / masses.mean())[:, np.newaxis]
    spread = unit * np.sqrt(squares.mean(axis=0, dtype=np.float64))
    return mean, np.where(extent > 0, spread, 0.0)  # no rounding of the mean


def _directions(centred, masses, n_components, n_threads):
    """Principal directions (d, m) over the deviation along them, the longest first.

    At most so many, fewer if the points span no more.
    """
    n, d = centred.shape
    share = np.full(n, 1.0 / n) if masses is None else masses / masses.sum()
    centred = centred * np.sqrt(share)[:, np.newaxis]
    # the smaller of the two Gram matrices has the same eigenvalues
    smaller = np.ascontiguousarray(centred.T if d <= n else centred)
    gram = inner(smaller, smaller, n_threads)
    values, vectors = largest_eigenpairs(gram, min(n_components, n, d))
    m = int(np.sum(values > 1e-12 * max(values[0], np.finfo(float).tiny)))
    values, vectors = values[:m], vectors[:m]
    if d > n and m:
        by_point = np.ascontiguousarray(vectors.T / np.sqrt(values))
        vectors = combine(by_point, centred, n_threads)
    return np.ascontiguousarray(vectors.T / np.sqrt(values))


def _ranks(x, masses, total):
    """Values of a feature and their normal scores, of variance 1; None if tied."""
    values, place = np.unique(x.astype(np.float64), return_inverse=True)
    share = np.bincount(place, masses) / total
    if share.max() > TIED:
        return None
    scores = ndtri(np.cumsum(share) - 0.5 * share)
    mean = np.sum(share * scores)
    return values, scores / np.sqrt(np.sum(share * (scores - mean) ** 2))


def _between(x, values, scores, scale):
    """Linear between the values, and beyond them as steep as standardising."""
    x = x.astype(np.float64)
    below = np.clip(np.searchsorted(values, x, "right") - 1, 0, len(values) - 2)
    low, high = values[below], values[below + 1]
    part = np.clip((x - low) / (high - low), 0.0, 1.0)
    inside = scores[below] + part * np.diff(scores)[below]
    # rounding leaves the order as it is, and the values their scores
    found = np.where(part < 1, np.minimum(inside, scores[below + 1]), scores[below + 1])
    beyond = x - np.clip(x, values[0], values[-1])
    return found + beyond / scale
