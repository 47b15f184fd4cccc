# SPDX-License-Identifier: BSD-3-Clause
"""Rules: every cluster as few conditions on the columns of a table.

For each cluster a shallow tree separates it from all other rows. Every node of the
tree is a candidate, with the conditions on its path; the node of the largest F1 score
among those of the required precision becomes the rule, without the conditions that it
does not need. Trees see ranks of numbers, below them missing cells, and 0 and 1 for
categories: thresholds are exact, and are written with as few digits as separate the
same rows.

A tree sees at most 50 columns, those whose mean ranks differ most. Equal rows are
merged first. Cross-validation repeats all of this without a fifth of the distinct
rows, for rules of each depth; the smallest depth whose F1 score is near the best one is
taken.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdsk._profile_columns import Categories, iter_columns
from cdsk._profiles import MAX_CATEGORIES, LabeledTable, make_frame, take_rows
from cdsk._validation import Array

# Rows that are used at most: fewer if the trees of all clusters had more cells.
_MAX_ROWS, _MIN_ROWS, _MAX_CELLS = 10_000, 1000, 2**23
# Of each cluster at least so many rows are drawn, if it has them.
_MIN_DRAWN = 50
# Columns that a tree sees, of the largest differences of mean ranks.
_MAX_COLUMNS = 50
_N_FOLDS = 5
# A deeper rule must gain more than this in F1 score.
_MIN_GAIN = 0.02


@dataclass(frozen=True)
class Condition:
    """Condition on a feature: bounds of a number, a category, or missing cells.

    Attributes
    ----------
    feature : str
    kind : {"number", "category", "missing"}
    above, at_most : float or None
        A number is larger than ``above`` and not larger than ``at_most``.
    category : str or None
    is_negated : bool
        The category is another one, or the cell is not missing.
    or_missing : bool
        A missing cell fulfills the bounds too.
    """

    feature: str
    kind: str
    above: float | None = None
    at_most: float | None = None
    category: str | None = None
    is_negated: bool = False
    or_missing: bool = False

    def __str__(self) -> str:
        if self.kind == "missing":
            return f"{self.feature} is {'present' if self.is_negated else 'missing'}"
        if self.kind == "category":
            sign = "is not" if self.is_negated else "="
            return f"{self.feature} {sign} {self.category}"
        text = self.feature
        if self.above is not None and self.at_most is not None:
            text = f"{self.above:.15g} < {text} <= {self.at_most:.15g}"
        elif self.above is not None:
            text += f" > {self.above:.15g}"
        elif self.at_most is not None:
            text += f" <= {self.at_most:.15g}"
        return f"({text} or missing)" if self.or_missing else text


@dataclass(frozen=True)
class Rule:
    """Conditions that describe a cluster; none if none of the precision was found.

    Attributes
    ----------
    cluster : int
        Label; -1 is noise.
    size : float
        Number of its rows, or sum of their sample weights.
    conditions : tuple of Condition
        All of them hold. Empty if no rule reaches the required precision.
    precision : float
        Share of the cluster in the rows that fulfill the conditions, by
        cross-validation; without conditions the largest one found. NaN if too few rows
        differ to measure it.
    recall : float
        Share of the cluster that fulfills them.
    coverage : float
        Share of all rows that fulfill them.
    """

    cluster: int
    size: float
    conditions: tuple[Condition, ...]
    precision: float
    recall: float
    coverage: float


@dataclass(frozen=True)
class Rules:
    """Rules of all clusters, by ``CDSK.rules``; ``print`` shows them in words.

    Attributes
    ----------
    rules : tuple of Rule
        One per cluster that has rows.
    max_depth : int
        Largest number of splits on the way to a rule.
    min_precision : float
        Required precision.
    n_rows, n_used : int
        Number of rows, and of those, drawn at random, that were used.
    """

    rules: tuple[Rule, ...]
    max_depth: int
    min_precision: float
    n_rows: int
    n_used: int

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return a table as arrays, a row per cluster.

        Returns
        -------
        columns : dict of ndarray
            ``cluster``, ``size``, ``rule`` (text, or None without a rule),
            ``n_conditions``, ``precision``, ``recall``, ``coverage``.
        """
        texts = [" and ".join(map(str, rule.conditions)) or None for rule in self.rules]
        numbers = {
            key: np.array([getattr(rule, key) for rule in self.rules])
            for key in ("cluster", "size", "precision", "recall", "coverage")
        }
        return {
            "cluster": numbers["cluster"],
            "size": numbers["size"],
            "rule": np.array(texts, dtype=object),
            "n_conditions": np.array([len(rule.conditions) for rule in self.rules]),
            **{key: numbers[key] for key in ("precision", "recall", "coverage")},
        }

    def to_frame(self) -> Any:
        """Return the table of ``to_dict`` as a pandas DataFrame; requires pandas."""
        return make_frame(self.to_dict())

    def __str__(self) -> str:
        from cdsk.report._sentences import describe_rules

        return "\n".join(describe_rules(self))

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class _Feature:
    """What an encoded column means: ranks in ``levels``, or whether it is a category.

    Neither for a column that says whether a cell is missing.
    """

    name: str
    levels: Array | None = None
    category: str | None = None
    has_missing: bool = False


@dataclass(frozen=True)
class _Rows:
    """Distinct encoded rows (n, d) with their weights, and whether they are members."""

    codes: NDArray[np.float32]
    weights: Array
    is_member: NDArray[np.bool_]

    def take(self, rows: NDArray[Any]) -> "_Rows":
        return _Rows(self.codes[rows], self.weights[rows], self.is_member[rows])


# Lower and upper bound of the code of each column that is restricted.
_Bounds = dict[int, tuple[float, float]]


@dataclass(frozen=True)
class _Score:
    """Weights of the covered members, of all covered rows, of members, of all rows."""

    hits: float
    covered: float
    members: float
    total: float

    @property
    def precision(self) -> float:
        return self.hits / self.covered if self.covered > 0 else 0.0

    @property
    def recall(self) -> float:
        return self.hits / self.members if self.members > 0 else 0.0

    @property
    def f1(self) -> float:
        total = self.covered + self.members
        return 2.0 * self.hits / total if total > 0 else 0.0


def compute_rules(table: LabeledTable, max_depth: int, min_precision: float) -> Rules:
    """Return the rules of all clusters of a table."""
    clusters, codes = np.unique(table.labels, return_inverse=True)
    sizes = np.bincount(codes, table.weights)
    n_rows = len(codes)
    n_cells = min(table.X.shape[1], _MAX_COLUMNS) * len(clusters)
    X, weights, n_used = table.X, table.weights, n_rows
    n_drawn = min(_MAX_ROWS, max(_MIN_ROWS, _MAX_CELLS // n_cells))
    if n_drawn < n_rows:
        drawn, factors = _draw_rows(codes, n_drawn)
        X, codes, n_used = take_rows(X, drawn), codes[drawn], len(drawn)
        weights = weights[drawn] * factors[codes]
    features, encoded = _encode(X, table.names, weights)
    distinct = np.column_stack([encoded, codes.astype(np.float32)])
    distinct, inverse = np.unique(distinct, axis=0, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights).astype(np.float64)
    encoded = np.ascontiguousarray(distinct[:, :-1])
    rules = []
    for y, cluster in enumerate(clusters.tolist()):
        rows = _Rows(encoded, weights, distinct[:, -1] == y)
        bounds, score = _find_checked_rule(rows, max_depth, min_precision)
        conditions = () if bounds is None else _describe_bounds(bounds, features, rows)
        rules.append(
            Rule(
                cluster=cluster,
                size=float(sizes[y]),
                conditions=conditions,
                precision=np.nan if score is None else score.precision,
                recall=np.nan if score is None else score.recall,
                coverage=np.nan if score is None else score.covered / score.total,
            )
        )
    return Rules(tuple(rules), max_depth, min_precision, n_rows, n_used)


def _draw_rows(codes: NDArray[np.intp], n: int) -> tuple[NDArray[np.intp], Array]:
    """Return about n rows, more of small clusters, and a weight for each cluster.

    With these weights the rows represent all.
    """
    sizes = np.bincount(codes)
    quota = np.minimum(sizes, np.maximum(sizes * n // len(codes), _MIN_DRAWN))
    # seeded, so that rules are reproducible
    shuffled = np.random.default_rng(0).permutation(len(codes))
    shuffled = shuffled[np.argsort(codes[shuffled], kind="stable")]
    position = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(shuffled[position < np.repeat(quota, sizes)]), sizes / quota


def _encode(
    X: Any, names: list[str], weights: Array
) -> tuple[list[_Feature], NDArray[np.float32]]:
    """Return the meaning and the codes (n, d) of the columns that trees see."""
    features: list[_Feature] = []
    columns: list[NDArray[Any]] = []
    for block in iter_columns(X):
        if isinstance(block, Categories):
            name, is_missing = names[block.column], block.codes < 0
            for i in _most_frequent(block, weights):
                features.append(_Feature(name, category=block.names[i]))
                columns.append(block.codes == i)
            if is_missing.any():
                features.append(_Feature(name))
                columns.append(is_missing)
            continue
        for i, j in enumerate(block.columns.tolist()):
            values = block.get_column(i)
            is_missing = np.isnan(values)
            levels, ranks = np.unique(values, return_inverse=True)
            levels = levels[~np.isnan(levels)]
            features.append(
                _Feature(names[j], levels, has_missing=bool(is_missing.any()))
            )
            columns.append(np.where(is_missing, -1, ranks))
    if not columns:  # categories without any present cell
        return features, np.zeros((len(weights), 0), dtype=np.float32)
    return features, np.column_stack(columns).astype(np.float32)


def _most_frequent(column: Categories, weights: Array) -> list[int]:
    present = column.codes >= 0
    totals = np.bincount(column.codes[present], weights[present], len(column.names))
    used = np.flatnonzero(totals).tolist()
    return sorted(used, key=lambda i: (-totals[i], column.names[i]))[:MAX_CATEGORIES]


def _find_checked_rule(
    rows: _Rows, max_depth: int, min_precision: float
) -> tuple[_Bounds | None, _Score | None]:
    """Return a rule and its score by cross-validation; no rule: the best score."""
    n_members = int(np.count_nonzero(rows.is_member))
    n_folds = min(_N_FOLDS, n_members, len(rows.weights) - n_members)
    if n_folds < 2 or rows.codes.shape[1] == 0:
        return None, None
    scores = _cross_validate(rows, max_depth, min_precision, n_folds)
    reached = [d for d, score in enumerate(scores) if score.precision >= min_precision]
    if not reached:
        return None, max(scores, key=lambda score: score.precision)
    best = max(scores[d].f1 for d in reached)
    depth = next(d for d in reached if scores[d].f1 >= best - _MIN_GAIN)
    return _find_rules(rows, max_depth, min_precision)[depth], scores[depth]


def _cross_validate(
    rows: _Rows, max_depth: int, min_precision: float, n_folds: int
) -> list[_Score]:
    """Return the score of the rules of each depth on rows that were left out."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    totals = np.zeros((max_depth, 4))
    for train, test in folds.split(rows.codes, rows.is_member):
        left_out = rows.take(test)
        found = _find_rules(rows.take(train), max_depth, min_precision)
        for depth, bounds in enumerate(found):
            score = _score(bounds, left_out)
            totals[depth] += score.hits, score.covered, score.members, score.total
    return [_Score(*total) for total in totals.tolist()]


def _find_rules(rows: _Rows, max_depth: int, min_precision: float) -> list[_Bounds]:
    """Return the best rule of each depth, from 1, of one tree: its first nodes."""
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(max_depth=max_depth, random_state=0)
    columns = _screen_columns(rows)
    codes = rows.codes[:, columns]
    tree = model.fit(codes, rows.is_member, sample_weight=rows.weights).tree_
    members = float(rows.weights[rows.is_member].sum())
    total = float(rows.weights.sum())
    nodes: list[tuple[int, _Bounds, _Score]] = []
    pending: list[tuple[int, int, _Bounds]] = [(0, 0, {})]
    while pending:
        node, depth, bounds = pending.pop()
        if depth > 0:
            covered = float(tree.weighted_n_node_samples[node])
            # shares of the classes, or their weights, by the version of scikit-learn
            classes = tree.value[node, 0]
            hits = covered * float(classes[-1] / classes.sum())
            nodes.append((depth, bounds, _Score(hits, covered, members, total)))
        left, right = tree.children_left[node], tree.children_right[node]
        if left < 0:
            continue
        j, threshold = int(columns[tree.feature[node]]), float(tree.threshold[node])
        low, high = bounds.get(j, (-np.inf, np.inf))
        pending.append((right, depth + 1, {**bounds, j: (threshold, high)}))
        pending.append((left, depth + 1, {**bounds, j: (low, threshold)}))
    found: list[_Bounds] = []
    for max_node_depth in range(1, max_depth + 1):
        best = max(
            (node for node in nodes if node[0] <= max_node_depth),
            key=lambda node: (
                node[2].precision >= min_precision,
                round(node[2].f1, 9),
                -node[0],
            ),
            default=None,
        )
        found.append({} if best is None else _drop_bounds(best[1], rows))
    return found


def _screen_columns(rows: _Rows) -> NDArray[np.intp]:
    """Return the columns that a tree sees, in order."""
    if rows.codes.shape[1] <= _MAX_COLUMNS:
        return np.arange(rows.codes.shape[1])
    own = np.where(rows.is_member, rows.weights, 0.0)
    total, members = rows.weights.sum(), own.sum()
    mean = rows.weights @ rows.codes / total
    variance = rows.weights @ np.square(rows.codes - mean) / total
    difference = np.abs(own @ rows.codes / members - mean)
    score = difference / np.sqrt(np.where(variance > 0, variance, np.inf))
    return np.sort(np.argsort(-score, kind="stable")[:_MAX_COLUMNS])


def _drop_bounds(bounds: _Bounds, rows: _Rows) -> _Bounds:
    """Return the bounds without those that add nothing to the precision."""
    score = _score(bounds, rows)
    for j, pair in list(bounds.items()):
        for side, free in enumerate((-np.inf, np.inf)):
            if pair[side] == free or (len(bounds) == 1 and free in pair):
                continue
            wider = (free, pair[1]) if side == 0 else (pair[0], free)
            fewer = {**bounds, j: wider}
            if wider == (-np.inf, np.inf):
                del fewer[j]
            other = _score(fewer, rows)
            if other.precision >= score.precision - 1e-12 and fewer:
                bounds, score, pair = fewer, other, wider
    return bounds


def _cover(bounds: _Bounds, rows: _Rows) -> NDArray[np.bool_]:
    covered = np.ones(len(rows.weights), dtype=bool)
    for j, (low, high) in bounds.items():
        covered &= (rows.codes[:, j] > low) & (rows.codes[:, j] <= high)
    return covered


def _score(bounds: _Bounds, rows: _Rows) -> _Score:
    covered, weights = _cover(bounds, rows), rows.weights
    return _Score(
        hits=float(weights[covered & rows.is_member].sum()),
        covered=float(weights[covered].sum()),
        members=float(weights[rows.is_member].sum()),
        total=float(weights.sum()),
    )


def _describe_bounds(
    bounds: _Bounds, features: list[_Feature], rows: _Rows
) -> tuple[Condition, ...]:
    """Return the bounds as conditions; thresholds are as short as rows allow."""
    conditions = []
    for j, pair in bounds.items():
        others = {i: other for i, other in bounds.items() if i != j}
        codes = rows.codes[_cover(others, rows), j]
        conditions.append(_make_condition(features[j], pair, codes))
    return tuple(conditions)


def _make_condition(
    feature: _Feature, pair: tuple[float, float], codes: NDArray[np.float32]
) -> Condition:
    """Return the condition that a code is in (low, high], by codes to tell apart."""
    low, high = pair
    if feature.levels is None:
        kind = "missing" if feature.category is None else "category"
        return Condition(
            feature.name, kind, category=feature.category, is_negated=high < 1.0
        )
    if high < 0:
        return Condition(feature.name, "missing")
    above = None if low < 0 else _split_levels(feature.levels, low, codes)
    at_most = None if np.isinf(high) else _split_levels(feature.levels, high, codes)
    if above is None and at_most is None:
        return Condition(feature.name, "missing", is_negated=True)
    or_missing = feature.has_missing and bool(np.isinf(low))
    return Condition(feature.name, "number", above, at_most, or_missing=or_missing)


def _split_levels(levels: Array, threshold: float, codes: NDArray[np.float32]) -> float:
    """Return a short number between the levels of the codes around a threshold."""
    below = codes[(codes <= threshold) & (codes >= 0)].max(initial=0.0)
    above = codes[codes > threshold].min(initial=len(levels) - 1.0)
    return round_between(float(levels[int(below)]), float(levels[int(above)]))


def round_between(low: float, high: float) -> float:
    """Return the number of fewest digits in [low, high), nearest to the middle."""
    middle = low / 2 + high / 2
    if low <= 0 < high:
        # 0 is the shortest number there is, but may be far from the middle
        if min(-low, high) > 0.25 * (high - low):
            return 0.0
    gap = high - low
    if not np.isfinite(gap) or gap <= 0:
        return low
    first = int(np.floor(np.log10(gap)))
    for digits in range(-first - 1, min(18 - first, 300)):
        # division by a power of ten is rounded correctly, its product is not
        scaled = middle * 10.0**digits if digits >= 0 else middle / 10.0**-digits
        for whole in (np.round(scaled), np.floor(scaled)):
            found = whole / 10.0**digits if digits >= 0 else whole * 10.0**-digits
            if low <= found < high:
                return float(found)
    return low
