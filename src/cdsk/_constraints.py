# SPDX-License-Identifier: BSD-3-Clause
"""What is known of some rows, and what follows from it (tests/test_constraints.py).

    y, must_link, cannot_link --> Constraints (of rows) --> Chains (of points)

*Chains* are the connected components of the points under must-links and equal classes.
A chain is in one cluster; cluster k is that of class k, and clusters without a class
follow.

*Choice.* Of every partition p, of all views, the weight is w_p ~ score_p^2 L_p. The
score is that of the votes of the others (_partition_choice.py). The likelihood L_p has
a factor for every known class, its smoothed share among the other known rows in the
same cluster of p, and for every link, 0.8 if p keeps it and 0.2 if not. So partitions
that contradict what is known lose, the sooner the more is known, and none wins by it
alone. The clusters of the one of largest weight are assigned to the classes.

*Spread.* Then all vote on the cluster of a point,

    S_ik = sum_p w_p (n_qk + a / c) / (n_q + a),    q the cluster of i in p,

with n_q known points in q, n_qk of class k. These also spread over the neighbor graph
with normalized adjacency matrix A,

    H = (I - b A)^-1 Y,

columns of equal sums, then rows. The cluster is the largest entry of S^(1-t) H^t with
t = r / (r + 10) for r known points per class. If a cluster has no class, the chosen
partition remains, and S counts all points in its clusters.
docs/notes/2026-11-19-constraints.md has the alternatives.

*Labels.* A chain has the cluster of its class, or of the largest sum of the logarithms
of these entries. Chains that cannot be together are assigned by an integer program.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse.csgraph import connected_components

from cdsk._operators.base import MIN_DEGREE, Array, Indices, Kernel
from cdsk._utils import warn
from cdsk._validation import is_missing

Labels = NDArray[np.int64]

# Power of the votes, probability that a link is broken, a, and known points per class
# with which neighbors count as much as S.
_VOTE_POWER, _BROKEN, _PRIOR, _EQUAL_SHARE = 2.0, 0.2, 0.5, 10.0
# b, the relative residual of H, and steps at most: about 40 are needed.
_DAMPING, _SPREAD_TOL, _MAX_STEPS = 0.95, 1e-6, 1000
# Partitions of smaller weight do not vote.
_LEAST_WEIGHT = 1e-4
# Votes for the cluster of a chain are at least this.
_LEAST_VOTE = 1e-12

_TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Chains:
    """Points of a fit that share a cluster.

    ``points`` (p,) are those of which anything is known, ``chain`` (p,) the chain of
    each; ``classes`` (q,) is the class of every chain, -1 if not known. ``apart``
    (r, 2) are chains that cannot share a cluster. ``known`` (k,) are points whose class
    is given, ``codes`` (k,) these classes; links are points (m, 2).
    """

    points: Indices
    chain: Indices
    classes: Labels
    apart: Indices
    known: Indices
    codes: Labels
    must_link: Indices
    cannot_link: Indices
    n_classes: int


@dataclass(frozen=True)
class Constraints:
    """What is known of the rows of a fit.

    ``rows`` (k,) have a known class, ``codes`` (k,) are indices of ``classes``; links
    (m, 2) are row numbers. ``index`` has the names of rows in messages, if any.
    """

    classes: NDArray[Any] | None
    rows: Indices
    codes: Labels
    must_link: Indices
    cannot_link: Indices
    index: Any = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def all_rows(self) -> Indices:
        """Rows of which anything is known, sorted."""
        links = self.must_link.ravel(), self.cannot_link.ravel()
        return np.unique(np.concatenate([self.rows, *links]))

    def check(self, n_clusters: int | str, row_weights: Array | None) -> None:
        """Refuse too few clusters, and what is known only of rows of weight 0."""
        if not isinstance(n_clusters, str) and n_clusters < self.n_classes:
            raise ValueError(
                f"n_clusters must be at least the number of classes in y, "
                f"{self.n_classes}; got {n_clusters}. Increase n_clusters."
            )
        if row_weights is None:
            return
        weights = np.bincount(self.codes, row_weights[self.rows], self.n_classes)
        if self.classes is not None and not weights.all():
            name = self.classes[np.argmin(weights)].item()
            raise ValueError(
                f"y must name each class for a row of positive weight; those of "
                f"{name!r} have weight 0."
            )
        for name in ("must_link", "cannot_link"):
            ends = getattr(self, name).ravel()
            if not row_weights[ends].all():
                row = ends[row_weights[ends] == 0][0]
                raise ValueError(
                    f"{name} must hold rows of positive weight; the weight of row "
                    f"{self._name(row)} is 0. Leave out its links."
                )

    def chains(self, inverse: NDArray[Any], row_weights: Array) -> Chains:
        """Return the chains of points; ``inverse`` (n_rows,) is the point of each row.

        Raise ValueError for a contradiction.
        """
        weighted = row_weights[self.rows] > 0
        rows, codes = self.rows[weighted], self.codes[weighted]
        ends = self.must_link.ravel(), self.cannot_link.ravel()
        points = np.unique(inverse[np.concatenate([rows, *ends])]).astype(np.intp)
        place = np.full(len(inverse), -1)
        place[points] = np.arange(len(points))
        known, links = place[inverse[rows]], place[inverse[self.must_link]]
        linked = _components(len(points), links)
        _, first, which = np.unique(
            linked[known], return_index=True, return_inverse=True
        )
        wrong = np.flatnonzero(codes != codes[first][which])
        if len(wrong):
            pair = np.sort([wrong[0], first[which[wrong[0]]]])
            self._refuse_two_classes(rows[pair], codes[pair], inverse)
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        same_class = np.column_stack([known, known[first][which]])
        chain = _components(len(points), np.concatenate([links, same_class]))
        classes = np.full(chain.max(initial=-1) + 1, -1)
        classes[chain[known]] = codes
        apart = np.sort(chain[place[inverse[self.cannot_link]]], axis=1)
        broken = np.flatnonzero(apart[:, 0] == apart[:, 1])
        if len(broken):
            i, j = self.cannot_link[broken[0]].tolist()
            self._refuse_link(i, j, inverse)
        order = np.lexsort((codes, known))  # whatever the order of the rows
        return Chains(
            points=points,
            chain=chain,
            classes=classes,
            apart=np.unique(apart, axis=0),
            known=points[known][order],
            codes=codes[order],
            must_link=inverse[self.must_link].astype(np.intp),
            cannot_link=inverse[self.cannot_link].astype(np.intp),
            n_classes=self.n_classes,
        )

    def _refuse_two_classes(
        self, rows: Indices, codes: Labels, inverse: NDArray[Any]
    ) -> None:
        assert self.classes is not None
        (i, j), (first, second) = rows, self.classes[codes].tolist()
        why = "are equal" if inverse[i] == inverse[j] else "are connected by must_link"
        raise ValueError(
            f"y must agree on rows that share a cluster: rows {self._name(i)} and "
            f"{self._name(j)} {why}, but y has {first!r} and {second!r}. Correct one "
            "of them, or set one to -1."
        )

    def _refuse_link(self, i: int, j: int, inverse: NDArray[Any]) -> None:
        why = "y has the same class for both, or must_link connects them"
        if inverse[i] == inverse[j]:
            why = "they are equal, and equal rows are never split"
            if i == j:
                why = "these are one row"
        raise ValueError(
            f"cannot_link must not hold rows that share a cluster: got rows "
            f"{self._name(i)} and {self._name(j)}, but {why}. Leave out one of these."
        )

    def _name(self, row: int) -> str:
        return str(row) if self.index is None else repr(self.index[row])


def _components(n: int, edges: Indices) -> Indices:
    """Return the connected component of each of n nodes, given their edges (m, 2)."""
    ones = np.ones(len(edges))
    graph = sparse.coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)


@dataclass(frozen=True)
class ConstraintCheck:
    """What was known of the rows of a fit, and how far the data agree.

    Attributes
    ----------
    n_labels, n_must_link, n_cannot_link : int
        Number of rows whose class was given, and of links.
    broken_labels : ndarray of shape (n_broken,)
        Rows that would be in the cluster of another class without what is known.
    broken_must_link, broken_cannot_link : ndarray of shape (n_broken, 2)
        Links, as row numbers, that would not be kept.
    conflicts : ndarray of shape (n_conflicts,)
        Rows with a class or a link whose margin is negative, the smallest first: the
        votes of the other points are for another cluster. Look for errors there.
    """

    n_labels: int
    n_must_link: int
    n_cannot_link: int
    broken_labels: Indices
    broken_must_link: Indices
    broken_cannot_link: Indices
    conflicts: Indices

    @classmethod
    def of(cls, constraints: Constraints, clusters: Labels) -> "ConstraintCheck":
        """Compare what is known with clusters of the data alone, matched to classes."""
        must, cannot = constraints.must_link, constraints.cannot_link
        split = clusters[must[:, 0]] != clusters[must[:, 1]]
        joined = clusters[cannot[:, 0]] == clusters[cannot[:, 1]]
        rows = constraints.rows
        return cls(
            n_labels=len(rows),
            n_must_link=len(must),
            n_cannot_link=len(cannot),
            broken_labels=rows[clusters[rows] != constraints.codes],
            broken_must_link=must[split],
            broken_cannot_link=cannot[joined],
            conflicts=rows[:0],
        )

    def with_margins(self, rows: Indices, margins: Array) -> "ConstraintCheck":
        """Return the check with the conflicts among ``rows``, by their margins."""
        negative = rows[margins[rows] < 0]
        order = np.argsort(margins[negative], kind="stable")
        return replace(self, conflicts=negative[order])


# Input.


def read_constraints(
    n_rows: int, y: Any, must_link: Any, cannot_link: Any, index: Any = None
) -> Constraints | None:
    """Return what is known of the rows; None: nothing. ``index`` is that of a frame."""
    classes, rows, codes = _read_labels(y, n_rows)
    index = index if hasattr(index, "get_indexer_for") else None
    together = _read_links(must_link, "must_link", n_rows, index)
    apart = _read_links(cannot_link, "cannot_link", n_rows, index)
    if not len(rows) and not len(together) and not len(apart):
        return None
    return Constraints(classes, rows, codes, together, apart, index)


def refuse_labels(y: Any) -> None:
    """Refuse classes of some rows, for estimators that cannot use them.

    Data that are not computed are ignored, as are classes of all rows.
    """
    if y is None or hasattr(y, "compute"):
        return
    known = _find_known(_cells(y))
    if known.any() and not known.all():
        raise ValueError(
            "y must be None: data in blocks are clustered without labels; got classes "
            "of some rows. Use cdsk.CDSK on a sample that has these rows."
        )


def _cells(y: Any) -> NDArray[Any]:
    """Return y as an array; masked cells are None."""
    if np.ma.isMaskedArray(y):
        objects: Any = y.astype(object)
        return np.asarray(objects.filled(None))
    try:
        cells = np.asarray(y)
        # a list of text and NaN: NumPy would make the text "nan" of it
        is_mixed = cells.dtype.kind == "U" and not hasattr(y, "dtype")
        return np.asarray(y, dtype=object) if is_mixed else cells
    except ValueError:  # cells of different lengths, which are no classes
        cells = np.empty(len(y), dtype=object)
        cells[:] = y
        return cells


def _find_known(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each cell of y is a class: not missing, -1, "-1" or "nan".

    The last two are what NumPy makes of -1 and NaN in an array of text.
    """
    if cells.dtype.kind in "biuf":
        return np.asarray((cells != -1) & (cells == cells)).ravel()
    objects = np.asarray(cells, dtype=object).ravel()
    known = [not (is_missing(cell) or cell in (-1, "-1", "nan")) for cell in objects]
    return np.array(known, dtype=bool)


def _read_labels(y: Any, n_rows: int) -> tuple[NDArray[Any] | None, Indices, Labels]:
    """Return the classes in y, the rows of a known class, and the index of each."""
    nothing = None, np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
    if y is None:
        return nothing
    cells = _cells(y)
    known = _find_known(cells)
    if cells.shape[:1] == (n_rows,) and (known.all() or not known.any()):
        return nothing
    if cells.shape not in ((n_rows,), (n_rows, 1)):
        raise ValueError(
            f"y must have a class, or -1, for each of the {n_rows} rows of X; got "
            f"shape {cells.shape}."
        )
    rows = np.flatnonzero(known)
    given = [
        _to_class(cell, row)
        for cell, row in zip(cells.ravel()[rows].tolist(), rows.tolist(), strict=True)
    ]
    if len({type(name) for name in given}) > 1:
        raise ValueError(
            "y must hold classes of one type, text or integers; got both. Convert one."
        )
    classes, codes = np.unique(np.array(given), return_inverse=True)
    if classes.tolist() == [1] and cells.dtype.kind in "iuf" and (cells == cells).all():
        warn(
            "y holds 1 and -1 only, and -1 means that the class is not known. If it is "
            "a class, give it another name.",
            UserWarning,
        )
    return classes, rows, codes.astype(np.int64)


def _to_class(cell: Any, row: int) -> str | int:
    """Return a class as text or as an integer."""
    if isinstance(cell, str):
        return str(cell)
    try:
        number = int(cell)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or number != cell:
        raise ValueError(
            "y must hold classes, text or integers, and -1, None or NaN where the "
            f"class is not known; got {cell!r} at row {row}."
        )
    return number


def _read_links(links: Any, name: str, n_rows: int, index: Any) -> Indices:
    """Return links as row numbers (m, 2)."""
    if links is None:
        return np.empty((0, 2), dtype=np.intp)
    pairs = np.asarray(links, dtype=None if index is None else object)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(
            f"{name} must hold pairs of rows, shape (n_links, 2); got shape "
            f"{pairs.shape}."
        )
    if index is not None:
        if not index.is_unique:
            raise ValueError(
                f"{name} must name rows by the index of X, which has the same label "
                "for several rows. Use X.reset_index() and row numbers."
            )
        rows = index.get_indexer_for(pairs.ravel().tolist())
        if (rows < 0).any():
            label = pairs.ravel()[rows < 0][0]
            raise ValueError(
                f"{name} must hold labels of the index of X; got {label!r}, which is "
                "not there."
            )
        return np.asarray(rows, dtype=np.intp).reshape(-1, 2)
    if pairs.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold row numbers, which are integers; got dtype "
            f"{pairs.dtype}."
        )
    outside = pairs[(pairs < 0) | (pairs >= n_rows)]
    if len(outside):
        raise ValueError(
            f"{name} must hold row numbers from 0 to {n_rows - 1}; got {outside[0]}."
        )
    return pairs.astype(np.intp)


def cluster_names(classes: NDArray[Any], n_clusters: int) -> NDArray[Any]:
    """Return the names of all clusters: the classes, then names for the others.

    Integers go on after the largest class; text is "cluster 4" for the fifth.
    """
    n_more = n_clusters - len(classes)
    if classes.dtype.kind != "U":
        start = max(int(classes[-1]) + 1, 0)
        return np.concatenate([classes, start + np.arange(n_more)])
    more: list[str] = []
    taken, i = set(classes.tolist()), len(classes)
    while len(more) < n_more:
        if (name := f"cluster {i}") not in taken:
            more.append(name)
        i += 1
    return np.array([*classes.tolist(), *more])


# Choice and spread.


def weigh_partitions(
    partitions: Sequence[Labels], scores: Array, chains: Chains
) -> Array:
    """Return the weights of partitions (n_points,), given their share of the votes."""
    log_weights = _VOTE_POWER * np.log(np.maximum(scores, _TINY))
    known, codes = chains.known, chains.codes
    smoothing = _PRIOR * max(chains.n_classes, 1)
    for p, labels in enumerate(partitions):
        counts = np.zeros((labels.max() + 1, chains.n_classes))
        np.add.at(counts, (labels[known], codes), 1.0)
        same = counts[labels[known], codes] - 1.0 + _PRIOR
        total = counts.sum(axis=1)[labels[known]] - 1.0 + smoothing
        log_weights[p] += np.sum(np.log(same / total))
        n_links = len(chains.must_link) + len(chains.cannot_link)
        n_broken = count_broken_links(labels, chains).sum()
        log_weights[p] += n_broken * np.log(_BROKEN)
        log_weights[p] += (n_links - n_broken) * np.log(1.0 - _BROKEN)
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def count_broken_links(labels: Labels, chains: Chains) -> NDArray[np.bool_]:
    """Return whether each link is broken, must-links first."""
    must, cannot = labels[chains.must_link], labels[chains.cannot_link]
    split, joined = must[:, 0] != must[:, 1], cannot[:, 0] == cannot[:, 1]
    return np.concatenate([split, joined])


def match_classes(labels: Labels, chains: Chains, n_clusters: int) -> Labels:
    """Return labels renumbered so that cluster k holds most points of class k.

    Clusters are assigned to classes so that most known points have their class.
    """
    counts = np.zeros((n_clusters, n_clusters))
    np.add.at(counts, (labels[chains.known], chains.codes), 1.0)
    clusters, classes = linear_sum_assignment(-counts)
    numbers = np.empty(n_clusters, dtype=np.int64)
    numbers[clusters] = classes
    return numbers[labels]


def vote_on_clusters(
    partitions: Sequence[Labels],
    weights: Array,
    n_clusters: int,
    points: Indices,
    clusters: Labels,
) -> Array:
    """Return S (n, n_clusters), given the clusters of some points."""
    votes = np.zeros((len(partitions[0]), n_clusters))
    for p in np.flatnonzero(weights > _LEAST_WEIGHT).tolist():
        labels = partitions[p]
        counts = np.full((labels.max() + 1, n_clusters), _PRIOR / n_clusters)
        np.add.at(counts, (labels[points], clusters), 1.0)
        shares = counts / counts.sum(axis=1, keepdims=True)
        votes += weights[p] * shares[labels]
    return votes


def spread_classes(kernel: Kernel, chains: Chains) -> Array:
    """Return H (n, n_classes): how near points are to the known ones of every class."""
    degrees = kernel.row_sums
    inverse_root = np.zeros(kernel.n)
    connected = degrees > MIN_DEGREE
    inverse_root[connected] = 1.0 / np.sqrt(degrees[connected])
    seeds = np.zeros((chains.n_classes, kernel.n))
    np.add.at(seeds, (chains.codes, chains.known), 1.0)

    def product(vectors: Array) -> Array:
        scaled = np.ascontiguousarray(vectors * inverse_root)
        return vectors - _DAMPING * kernel.product(scaled) * inverse_root

    solution = _conjugate_gradients(product, seeds)
    mass = np.maximum(solution, 0.0)
    mass /= np.maximum(mass.sum(axis=1, keepdims=True), _TINY)
    total = mass.sum(axis=0)
    return np.where(total > 0, mass / np.maximum(total, _TINY), 1.0 / len(mass)).T


def _conjugate_gradients(product: Any, right: Array) -> Array:
    """Solve a positive definite system for each row of ``right`` (m, n)."""
    x, residual = np.zeros_like(right), right.copy()
    direction, squares = residual.copy(), np.sum(right**2, axis=1)
    target = _SPREAD_TOL**2 * squares
    for _ in range(_MAX_STEPS):
        if (squares <= target).all():
            break
        image = product(direction)
        curvature = np.maximum(np.sum(direction * image, axis=1), _TINY)
        step = np.where(squares > target, squares / curvature, 0.0)[:, np.newaxis]
        x += step * direction
        residual -= step * image
        before, squares = squares, np.sum(residual**2, axis=1)
        ratio = squares / np.maximum(before, _TINY)
        direction = residual + ratio[:, np.newaxis] * direction
    return x


def combine(votes: Array, spread: Array, chains: Chains) -> Array:
    """Return S^(1-t) H^t (n, n_clusters)."""
    rate = len(chains.known) / chains.n_classes
    t = rate / (rate + _EQUAL_SHARE)
    return np.asarray(votes ** (1.0 - t) * spread**t)


# Labels.


def assign_chains(labels: Labels, votes: Array, chains: Chains) -> Labels:
    """Return labels that agree with all that is known.

    Chains have the clusters of most ``votes`` (n, n_clusters).
    """
    labels, n_clusters = labels.copy(), votes.shape[1]
    scores = np.log(np.maximum(votes, _LEAST_VOTE))
    totals = np.zeros((len(chains.classes), n_clusters))
    np.add.at(totals, chains.chain, scores[chains.points])
    is_named = chains.classes >= 0
    allowed = np.ones(totals.shape, dtype=bool)
    allowed[is_named] = np.arange(n_clusters) == chains.classes[is_named, np.newaxis]
    clusters = np.argmax(np.where(allowed, totals, -np.inf), axis=1)
    groups = _components(len(clusters), chains.apart)
    joined = clusters[chains.apart[:, 0]] == clusters[chains.apart[:, 1]]
    for group in np.unique(groups[chains.apart[joined, 0]]):
        members = np.flatnonzero(groups == group)
        pairs = chains.apart[groups[chains.apart[:, 0]] == group]
        places = np.searchsorted(members, pairs)
        found = _assign_apart(totals[members], allowed[members], places)
        clusters[members] = found
    labels[chains.points] = clusters[chains.chain]
    # no number of a cluster without points
    used = np.union1d(np.arange(chains.n_classes), labels)
    return np.searchsorted(used, labels)


def _assign_apart(scores: Array, allowed: NDArray[np.bool_], apart: Indices) -> Labels:
    """Return the clusters of chains that keep them apart, of the largest score."""
    m, c = scores.shape
    variables = np.arange(m * c).reshape(m, c)
    one_each = sparse.kron(sparse.eye_array(m), np.ones((1, c)))
    n_pairs = len(apart) * c
    rows = np.repeat(np.arange(n_pairs), 2)
    columns = variables[apart].transpose(0, 2, 1).ravel()
    not_both = sparse.csr_array(
        (np.ones(2 * n_pairs), (rows, columns)), (n_pairs, m * c)
    )
    solution = milp(
        -(scores - scores.max(axis=1, keepdims=True)).ravel(),
        integrality=np.ones(m * c),
        bounds=Bounds(0.0, allowed.ravel().astype(float)),
        constraints=[
            LinearConstraint(sparse.csr_array(one_each), 1.0, 1.0),
            LinearConstraint(not_both, -np.inf, 1.0),
        ],
    )
    if solution.x is None:
        raise ValueError(
            f"cannot_link cannot be kept by n_clusters={c} clusters: a group of "
            f"{m} rows or chains of rows needs more. Increase n_clusters, or leave out "
            "some links."
        )
    clusters: Labels = np.argmax(solution.x.reshape(m, c), axis=1)
    return clusters
