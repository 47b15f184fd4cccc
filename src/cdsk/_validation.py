# SPDX-License-Identifier: BSD-3-Clause
"""Checks of parameters and arrays, with messages that say what to do.

In this order: names of options, parameters of the estimator, arrays, data frames.
"""

import numbers
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from operator import ge, gt, le
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import utils
from sklearn.metrics.pairwise import KERNEL_PARAMS

from cdsk._approximate import check_installed
from cdsk._forces import WIDTH
from cdsk._rows import asymmetry
from cdsk._threads import resolve_n_threads
from cdsk._utils import warn

Array = NDArray[np.float64]
# What X may be: frames are array-like too.
Data = ArrayLike | sparse.sparray | sparse.spmatrix
Matrix = TypeVar("Matrix", NDArray[Any], sparse.csr_array)

# Names of options, each checked here and used where it is implemented.
REPRESENTATIONS = (
    *("raw", "standardize", "normal_scores", "whiten", "layout"),
    *("chi_square", "indicators"),  # of tables with categories
)
MISSING = ("auto", "error")
PAIRWISE_KERNELS = tuple("chi2 cosine laplacian linear poly polynomial sigmoid".split())
PRECOMPUTED_KERNELS = ("precomputed", "precomputed_neighbors")
BANDWIDTH_RULES = ("neighbor", "variance", "std", "median", "local")
METRICS = ("euclidean", "cosine")  # "cosine" is the Euclidean one of unit rows
EIGEN_SOLVERS = tuple("auto eigsh block_lanczos multilevel randomized dense".split())
_RAW = ("auto", "raw")  # representations that may leave points as they are
LABEL_METHODS = ("kmeans", "cluster_qr", "discretize", "auto")

# Smallest value of kernel parameters. A negative gamma makes far points similar.
_MIN_KERNEL_PARAMS = {"gamma": 0, "degree": 1}


def check_parameters(model: Any) -> None:
    """Check the parameters of ``CDSK`` that do not depend on the data."""
    if isinstance(model.n_clusters, str):
        check_choice(model.n_clusters, "n_clusters", ("auto",), "an integer")
    else:
        check_integer(model.n_clusters, "n_clusters", 1)
    if not callable(model.kernel):
        kernels = ("rbf", *PRECOMPUTED_KERNELS, *PAIRWISE_KERNELS)
        check_choice(model.kernel, "kernel", kernels)
    if model.kernel_params is not None:
        _check_kernel_params(model.kernel, model.kernel_params)
    check_choice(model.metric, "metric", METRICS)
    if model.psd is not None and not isinstance(model.psd, bool | np.bool_):
        raise ValueError(f"psd must be True, False or None; got {model.psd!r}.")
    if isinstance(model.bandwidth, numbers.Real):
        check_number(model.bandwidth, "bandwidth", above=0)
    else:
        rules = ("auto", *BANDWIDTH_RULES)
        check_choice(model.bandwidth, "bandwidth", rules, "a number > 0")
    if model.n_neighbors is not None:
        check_integer(model.n_neighbors, "n_neighbors", 1)
    if model.neighbors is not None:
        _check_neighbors(model.neighbors)
    if model.approximation is not None:
        check_choice(model.approximation, "approximation", ("lowrank",), "None")
    if model.rank is not None:
        check_integer(model.rank, "rank", 1)
    check_choice(model.representation, "representation", ("auto", *REPRESENTATIONS))
    if model.n_components is not None:
        _check_n_components(model.n_components, model.representation)
    check_choice(model.missing, "missing", MISSING)
    if isinstance(model.lam, str):
        check_choice(model.lam, "lam", ("auto",), "a number in (0, 1]")
    else:
        check_number(model.lam, "lam", above=0, at_most=1)
    if isinstance(model.init, str):
        check_choice(model.init, "init", ("uniform", "sparse"))
    check_integer(model.max_iter, "max_iter", 0)
    check_number(model.tol, "tol", at_least=0)
    check_number(model.qp_tol, "qp_tol", above=0)
    check_choice(model.eigen_solver, "eigen_solver", EIGEN_SOLVERS)
    check_choice(model.assign_labels, "assign_labels", LABEL_METHODS)
    # k-means draws a seed for each of them at once
    check_integer(model.n_init, "n_init", 1, 10**6)
    if model.noise is not None:
        check_number(model.noise, "noise", at_least=0, at_most=0.5)
    for name in ("min_cluster_size", "max_cluster_size"):
        check_size(getattr(model, name), name)
    if not isinstance(model.verbose, bool | np.bool_):
        check_integer(model.verbose, "verbose", 0)
    _check_combinations(model)


def _check_combinations(model: Any) -> None:
    """Check the parameters that exclude each other."""
    is_gaussian = model.kernel == "rbf"
    is_graph = model.kernel == "precomputed_neighbors"
    has_graph, has_k = model.neighbors is not None, model.n_neighbors is not None
    is_auto, bandwidth = model.n_clusters == "auto", str(model.bandwidth)
    if not is_gaussian:
        _refuse(
            model,
            'truncates kernel="rbf" only',
            "kernel",
            neighbors=(has_graph, "None"),
            n_neighbors=(has_k and not is_graph, "None"),
        )
    if model.kernel in PRECOMPUTED_KERNELS:
        is_rule = is_graph and bandwidth in BANDWIDTH_RULES[:-1]
        _refuse(
            model,
            "needs points",
            "kernel",
            n_clusters=(is_auto, "an integer"),
            metric=(model.metric != "euclidean", "'euclidean'"),
            representation=(model.representation not in _RAW, "'auto' or 'raw'"),
            noise=(bool(model.noise), "None"),
            bandwidth=(is_rule, "a number, 'auto' or 'local'"),
            # samples have other neighbors
            lam=(is_graph and model.lam == "auto", "a number"),
        )
    if model.representation == "layout":
        reason = "cannot be found in a layout, which moves outliers into clusters"
        _refuse(model, reason, "representation", noise=(bool(model.noise), "None"))
    if has_graph:
        _check_graph(model)
    if model.approximation is not None:
        is_several = bandwidth in ("auto", "local")
        _refuse(
            model,
            "is not a Gaussian kernel of one bandwidth on all pairs of points",
            "approximation",
            kernel=(not is_gaussian, "'rbf'"),
            bandwidth=(is_several, "a number, or a rule for one bandwidth,"),
            n_neighbors=(has_k, "None"),
            neighbors=(has_graph, "None"),
            psd=(model.psd is not None and not model.psd, "None or True"),
        )
    elif model.rank is not None:
        reason = "is the rank of a low-rank approximation"
        _refuse(model, reason, "approximation", rank=(True, "None"))


def _check_graph(model: Any) -> None:
    """Check the parameters that a transformer or an approximate search excludes."""
    if not isinstance(model.neighbors, str):
        reason, is_auto = "searches for neighbors by itself", model.n_clusters == "auto"
        _refuse(model, reason, "neighbors", n_clusters=(is_auto, "an integer"))
    elif str(model.bandwidth) != "auto":
        reason, has_k = "finds the neighbors of a truncated kernel", model.n_neighbors
        _refuse(model, reason, "n_neighbors", neighbors=(has_k is None, "None"))


def _refuse(model: Any, reason: str, other: str, **values: tuple[bool, str]) -> None:
    """Raise ValueError at the first parameter whose value is refused.

    ``values`` says for each whether it is, and what is expected for that of ``other``.
    """
    for name, (is_refused, expected) in values.items():
        if is_refused:
            raise ValueError(
                f"{name}={getattr(model, name)!r} {reason}; expected {expected} for "
                f"{other}={getattr(model, other)!r}."
            )


def sparse_error(model: Any) -> ValueError | None:
    """Return the error of a fit of sparse points, None if the parameters allow it.

    Refused is what needs a number for every row and column, or every pair of points.
    Parameters need not have been checked: scikit-learn asks for tags before.
    """
    bandwidth, is_raw = str(model.bandwidth), str(model.representation) in _RAW
    is_sparse_start = isinstance(model.init, str) and model.init == "sparse"
    is_rule = bandwidth in ("variance", "std", "median")
    is_full = model.n_neighbors is None and model.neighbors is None
    number = f"a number for bandwidth={model.bandwidth!r}"
    refusals = (
        ("kernel", str(model.kernel) != "rbf", "'rbf', or a kernel matrix,"),
        ("representation", not is_raw, "'raw'"),
        ("neighbors", isinstance(model.neighbors, str), "None"),
        ("approximation", model.approximation is not None, "None"),
        ("init", is_sparse_start, "'uniform'"),
        ("bandwidth", is_rule, "'auto', 'neighbor' or a number"),
        ("n_neighbors", is_full and bandwidth != "auto", number),
    )
    for name, is_refused, expected in refusals:
        if is_refused:
            return ValueError(
                f"{name}={getattr(model, name)!r} needs dense points; expected "
                f"{expected} for a sparse X, or X.toarray() if there is memory for it."
            )
    return None


def _check_neighbors(transformer: Any) -> None:
    """Check a transformer of points to a graph of distances, or its name."""
    if isinstance(transformer, str):
        check_choice(
            transformer, "neighbors", ("approximate",), "None or a transformer"
        )
        check_installed()
        return
    methods = "fit_transform", "transform", "get_params"
    is_complete = all(hasattr(transformer, name) for name in methods)
    if not is_complete or isinstance(transformer, type):
        raise ValueError(
            "neighbors must be None or a transformer of points to a sparse graph of "
            "distances, such as KNeighborsTransformer(mode='distance'), or "
            f"'approximate'; got {transformer!r}."
        )
    if getattr(transformer, "mode", "distance") != "distance":
        raise ValueError(
            "neighbors must return distances; expected a transformer with "
            f"mode='distance', got mode={transformer.mode!r}."
        )


def _check_n_components(n_components: Any, representation: str) -> None:
    check_integer(n_components, "n_components", 1)
    # scikit-learn's checks of estimators set it with all else as it is: "auto"
    if representation not in ("auto", "whiten", "layout"):
        raise ValueError(
            'n_components is for representation="whiten" or "layout"; expected None '
            f"for representation={representation!r}, got {n_components!r}."
        )
    if representation == "layout":
        check_integer(n_components, "n_components of a layout", 1, WIDTH)


def _check_kernel_params(kernel: Any, parameters: Any) -> None:
    if not isinstance(parameters, Mapping):
        raise ValueError(f"kernel_params must be a dict or None; got {parameters!r}.")
    if callable(kernel):
        return
    allowed = KERNEL_PARAMS[kernel] if kernel in PAIRWISE_KERNELS else ()
    for name, value in parameters.items():
        if name not in allowed:
            expected = ", ".join(map(repr, sorted(allowed))) or "no parameters"
            raise ValueError(
                f"kernel={kernel!r} has {expected} as kernel_params; got {name!r}."
            )
        # gamma=None is scikit-learn's default, 1 / n_features
        if not (name == "gamma" and value is None):
            least = _MIN_KERNEL_PARAMS.get(name)
            check_number(value, f"kernel_params[{name!r}]", at_least=least)


def check_integer(value: Any, name: str, least: int, most: int | None = None) -> int:
    """Return an integer of at least ``least`` and at most ``most``."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
        bounds = f"at least {least}" + ("" if most is None else f" and at most {most}")
        raise ValueError(f"{name} must be an integer of {bounds}; got {value!r}.")
    return int(value)


def check_n_clusters(n_clusters: Any, n_samples: int) -> None:
    """Check that n_clusters is an integer between 1 and the number of samples."""
    check_integer(n_clusters, "n_clusters", 1)
    if n_clusters > n_samples:
        raise ValueError(
            "n_clusters must be at most the number of samples; got n_clusters="
            f"{n_clusters} and n_samples={n_samples}."
        )


def check_number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return a finite real number within the bounds as a float."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else np.nan
    except OverflowError:  # 10**400
        number = np.inf
    is_valid, bounds = bool(np.isfinite(number)), []
    limits = (">", above, gt), (">=", at_least, ge), ("<=", at_most, le)
    for sign, bound, holds in limits:
        if bound is not None:
            is_valid = is_valid and holds(number, bound)
            bounds.append(f"{sign} {bound}")
    if not is_valid:
        expected = f"a number {' and '.join(bounds)}" if bounds else "a finite number"
        raise ValueError(f"{name} must be {expected}; got {value!r}.")
    return number


def check_size(value: Any, name: str) -> None:
    """Check that a size is None, a number of rows or a fraction of all."""
    is_bool = isinstance(value, bool | np.bool_)
    is_count = isinstance(value, numbers.Integral) and not is_bool and int(value) >= 1
    is_fraction = isinstance(value, float | np.floating) and 0.0 < value < 1.0
    if not (value is None or is_count or is_fraction):
        raise ValueError(
            f"{name} must be a number of rows, an integer of at least 1, or a fraction "
            f"of all rows, above 0 and below 1, or None; got {value!r}."
        )


def check_choice(
    value: Any, name: str, choices: tuple[str, ...], alternative: str = ""
) -> str:
    """Return one of ``choices``; ``alternative`` names what else is allowed."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        listed = listed if len(choices) == 1 else f"one of {listed}"
        other = f"{alternative} or " if alternative else ""
        raise ValueError(f"{name} must be {other}{listed}; got {value!r}.")
    return value


def check_random_state(random_state: Any) -> np.random.RandomState:
    """Return the RandomState that ``random_state`` is or seeds."""
    try:
        rng: np.random.RandomState = utils.check_random_state(random_state)
        return rng
    except ValueError:
        raise ValueError(
            "random_state must be an integer between 0 and 2**32 - 1, a RandomState or "
            f"None; got {random_state!r}."
        ) from None


# Arrays.

# Errors of float() for what is not a number, or too large: 10**400.
_CONVERSION_ERRORS = (TypeError, ValueError, OverflowError)

# Bandwidths whose squares and inverse squares do not overflow.
_MIN_BANDWIDTH, _MAX_BANDWIDTH = 1e-150, 1e150

# Largest magnitude and smallest extent of data whose squared distances do not overflow.
_MAX_MAGNITUDE, _MIN_EXTENT = 1e150, 1e-130

# Range of the largest value of a kernel matrix that is not rescaled.
_MIN_SCALE, _MAX_SCALE = 1e-100, 1e100

# Largest ratio of two positive sample weights; its square enters the kernel.
_MAX_WEIGHT_RATIO = 1e6

# Rows of new points in a chunk, and their numbers: 64 MiB. Measured in 2 and 10
# dimensions, half as many take a tenth longer, twice as many are no faster.
_CHUNK_ROWS, _CHUNK_NUMBERS = 2**16, 2**23

# Number of invalid rows that a message lists.
MAX_LISTED = 5

_DISTANCE_HINT = (
    "Is this a distance matrix D? exp(-D**2 / (2 * b**2)) makes a similarity of it, "
    "with a bandwidth b such as half the distance of near points."
)


def check_points(
    X: Any,
    name: str = "X",
    *,
    validate: Callable[..., Any] | None = None,
    hint: str = "",
    **options: Any,
) -> Any:
    """Return X as a C-contiguous float32 or float64 matrix of finite numbers.

    ``validate`` is scikit-learn's ``check_array`` or an estimator's ``validate_data``.
    ``hint`` says what to do about text.
    """
    if not isinstance(X, np.ndarray):
        check_columns(X, name)
    if np.ma.is_masked(X):
        cell = _describe_first(np.argwhere(np.ma.getmaskarray(X)), X)
        raise ValueError(
            f"{name} must not have masked cells; got one{cell}; expected finite "
            "numbers only."
        )
    if getattr(getattr(X, "dtype", None), "kind", None) in ("M", "m"):
        raise ValueError(
            f"{name} must hold numbers only; got {X.dtype}. Convert times to numbers, "
            "such as days since the first."
        )
    validate = validate or partial(utils.check_array, input_name=name)
    try:
        return validate(X, dtype=[np.float64, np.float32], order="C", **options)
    except _CONVERSION_ERRORS as error:
        message = _explain_conversion_error(error, X, name)
        if message is None:
            raise
        if hint and "numbers only; got '" in message:
            message = f"{message} {hint}"
        raise ValueError(message) from None


def _explain_conversion_error(error: Exception, X: Any, name: str) -> str | None:
    """Return a message with the first invalid cell; None: scikit-learn's is as good."""
    text = str(error)
    # a missing value of pandas, text, or 10**400
    is_invalid = "NAType" in text or "could not convert" in text
    is_invalid |= "float() argument" in text and not hasattr(X, "dtype")
    if "inhomogeneous" in text:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in X]
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                return (
                    f"{name} must have rows of the same length; got {lengths[0]} cells "
                    f"at row 0 and {length} at row {row}."
                )
        is_invalid = True
    if is_invalid or isinstance(error, OverflowError):
        return f"{name} must hold numbers only; got {_first_invalid(X)}."
    for word, test in ("NaN", np.isnan), ("infinity", np.isinf):
        if f"Input {name} contains {word}" in text:
            try:
                cell = _describe_first(_find_cells(X, test), X)
            except (TypeError, ValueError):  # another spelling of a missing value
                cell = ""
            return f"Input {name} contains {word}{cell}; expected finite numbers only."
    if text.startswith("Complex data"):  # it shows all of them
        return f"Complex data not supported: {name} must hold real numbers."
    return None


def _find_cells(X: Any, test: Callable[[Any], Any]) -> NDArray[np.integer]:
    """Return row and column of every cell that passes the test (m, 2), in order."""
    if is_frame(X) and hasattr(X, "iloc"):  # with NaN for missing values
        X = X.to_numpy(dtype=np.float64, na_value=np.nan)
    if not sparse.issparse(X):
        return np.argwhere(test(np.asarray(X, dtype=np.float64)))
    cells = X.tocoo()
    passes = test(cells.data)
    places = np.column_stack([cells.row[passes], cells.col[passes]])
    return places[np.lexsort(places.T[::-1])]


def _describe_first(cells: NDArray[np.integer], X: Any) -> str:
    row, column = cells[0]
    return f" at row {row}, column {column_name(X, column)} ({len(cells)} in all)"


def _first_invalid(X: Any) -> str:
    for place, cell in np.ndenumerate(np.asarray(X, dtype=object)):
        try:
            float(cell)
        except _CONVERSION_ERRORS:
            where = ", ".join(map("{} {}".format, ("row", "column", "layer"), place))
            return f"{cell!r} at {where}" if where else repr(cell)
    return "cells of unequal shape"


def as_floats(values: ArrayLike, name: str, expected: str) -> Array:
    """Return a C-contiguous float64 array; ``expected`` says what it must hold."""
    try:
        return np.asarray(values, dtype=np.float64, order="C")
    except _CONVERSION_ERRORS:
        got = _first_invalid(values)
        raise ValueError(f"{name} must {expected}; got {got}.") from None


def as_common_dtype(A: ArrayLike, B: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both as C-contiguous arrays of the wider dtype."""
    dtype = np.result_type(A, B)
    return np.ascontiguousarray(A, dtype), np.ascontiguousarray(B, dtype)


def normalize_rows(X: Matrix) -> Matrix:
    """Scale the rows of a checked X to unit length; refuse rows of zeros."""
    largest = abs(X).max(axis=1)
    if sparse.issparse(X):
        largest = largest.toarray().ravel()
    zeros = np.flatnonzero(largest == 0)
    if len(zeros):
        listed = ", ".join(map(str, zeros[:MAX_LISTED]))
        more = ", ..." if len(zeros) > MAX_LISTED else ""
        raise ValueError(
            'metric="cosine" needs rows that have a direction; got zeros only in row'
            f"{'' if len(zeros) == 1 else 's'} {listed}{more} ({len(zeros)} in all, "
            "counted from 0). Remove such rows: they belong to no cluster. Or fit with "
            'metric="euclidean".'
        )
    # in two steps, so that no square overflows
    scaled = _divide_rows(X, largest)
    squares = (abs(scaled) ** 2).sum(axis=1, dtype=np.float64)
    unit: Matrix = _divide_rows(scaled, np.sqrt(squares).astype(X.dtype))
    return unit


def _divide_rows(X: Any, divisors: NDArray[Any]) -> Any:
    if not sparse.issparse(X):
        return X / divisors[:, np.newaxis]
    values = X.data / np.repeat(divisors, np.diff(X.indptr))
    return sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)


def supports_row_slicing(X: Any) -> bool:
    """Whether X[rows] can be had, and checked, without the other rows."""
    if sparse.issparse(X):
        return bool(X.ndim == 2 and X.format == "csr")
    return (isinstance(X, np.ndarray) or hasattr(X, "iloc")) and X.ndim == 2


def iter_row_chunks(X: Any, width: int = 0) -> Iterator[slice]:
    """Return slices of the rows of X that are small enough to copy; at least one.

    ``width`` is the number of coordinates that a row is going to have.
    """
    n, d = X.shape
    per_row = d if not sparse.issparse(X) else -(-X.nnz // max(n, 1))
    per_row = max(per_row, width)
    step = max(1, min(_CHUNK_ROWS, _CHUNK_NUMBERS // max(per_row, 1)))
    chunks: Iterator[slice] = utils.gen_batches(max(n, 1), step)
    return chunks


@contextmanager
def offset_row_numbers(rows: slice) -> Iterator[None]:
    """Say in an error to which row its row numbers are relative."""
    try:
        yield
    except ValueError as error:
        if rows.start == 0:
            raise
        offset = f"(Row numbers are relative to row {rows.start} of X.)"
        raise ValueError(f"{error} {offset}") from None


def check_sample_weight(
    sample_weight: ArrayLike | None, X: Any, is_pairwise: bool
) -> Array | None:
    """Return the weights of the rows (n,); None if all of them are 1.

    ``is_pairwise``: X is a matrix between the rows, none of which can be left out.
    """
    if sample_weight is None:
        return None
    n = X.shape[0]
    if np.ma.isMaskedArray(sample_weight):
        raise ValueError(
            "`sample_weight` must not be a masked array. Set the weight of rows that "
            "do not count to 0."
        )
    values = np.asarray(sample_weight)
    # float() would read numbers from text
    kind = values.dtype.kind
    is_text = kind == "O" and any(isinstance(cell, str) for cell in values.ravel())
    if values.shape != (n,) or kind not in "biufO" or is_text:
        raise ValueError(
            f"`sample_weight` must hold a number for each of the {n} rows of X; got "
            f"shape {values.shape} and dtype {values.dtype}."
        )
    weights = as_floats(values, "`sample_weight`", "hold numbers").copy()
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    if len(wrong):
        raise ValueError(
            f"`sample_weight` must be finite and not negative; got {wrong[0]}."
        )
    positive = weights[weights > 0]
    if len(positive) < 2:
        raise ValueError(
            "`sample_weight` must be positive for at least two rows; got "
            f"{len(positive)}, and zero for all others."
        )
    low, high = float(positive.min()), float(positive.max())
    if not 1e-100 < low <= high <= min(1e100, _MAX_WEIGHT_RATIO * low):
        raise ValueError(
            "`sample_weight` must be between 1e-100 and 1e100 and differ by a factor "
            f"of {_MAX_WEIGHT_RATIO:.0e} at most, or be 0; got {low:.3g} to "
            f"{high:.3g}."
        )
    if is_pairwise and not weights.all():
        raise ValueError(
            "`sample_weight` must be positive where X is a matrix between the samples; "
            "got 0. Remove the row and the column instead."
        )
    return None if (weights == 1).all() else weights


def check_n_rows(n: int) -> int:
    """Return n; refuse more rows than 32-bit indices of points can address."""
    if n >= 2**31:
        raise ValueError(
            f"X must have fewer than 2**31 rows; got {n:,}. Use BlockCDSK for more."
        )
    return n


def max_coordinate(n_features: int) -> float:
    """Return the magnitude of coordinates whose squared distances do not overflow."""
    return float(_MAX_MAGNITUDE / np.sqrt(n_features))


def coordinate_message(limit: float, got: str) -> str:
    """Return the message for coordinates beyond ``max_coordinate``."""
    return (
        f"X must hold coordinates of magnitude {limit:.1e} at most, so that squared "
        f"distances do not overflow; got {got}. Use another unit."
    )


def check_magnitude(X: Any, n_features: int = 1) -> None:
    """Refuse coordinates beyond ``max_coordinate``."""
    limit = max_coordinate(n_features)
    largest = max(float(X.max()), -float(X.min()))
    if not largest <= limit:  # NaN neither
        raise ValueError(coordinate_message(limit, f"{largest:.1e}"))


def check_extent(X: Any) -> None:
    """Refuse data whose squared distances overflow or underflow."""
    check_magnitude(X, X.shape[1])
    extent = float((X.max(axis=0) - X.min(axis=0)).max())
    if 0 < extent < _MIN_EXTENT:
        raise ValueError(
            f"X must vary by {_MIN_EXTENT:.0e} at least, so that squared distances do "
            f"not underflow; got a largest extent of {extent:.1e}. Use another unit."
        )


def check_bandwidth(bandwidth: Any, n: int, name: str = "bandwidth") -> Array:
    """Return one positive bandwidth per point (n,)."""
    expected = f"be a positive number or an array of {n} positive numbers"
    values = as_floats(bandwidth, name, expected)
    if values.ndim == 0:
        values = np.full(n, values)
    if values.shape != (n,):
        raise ValueError(
            f"{name} must be one number or an array of shape ({n},), one bandwidth per "
            f"point; got shape {values.shape}."
        )
    wrong = values[~((values >= _MIN_BANDWIDTH) & (values <= _MAX_BANDWIDTH))]
    if len(wrong):
        raise ValueError(
            f"{name} must be positive and finite (between {_MIN_BANDWIDTH:g} and "
            f"{_MAX_BANDWIDTH:g}); got {float(wrong[0])!r}."
        )
    return np.ascontiguousarray(values)


def check_simplex_point(values: ArrayLike, n: int, upper: float, name: str) -> Array:
    """Return a new array (n,) of values in [0, upper] with sum 1."""
    point = as_floats(values, name, "hold numbers")
    if point.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},); got shape {point.shape}.")
    outside = point[~((point >= 0) & (point <= upper * (1 + 1e-9)))]
    if len(outside):
        raise ValueError(
            f"{name} must lie between 0 and the upper bound {upper:.6g}; got "
            f"{float(outside[0])!r}."
        )
    if abs(point.sum() - 1.0) > 1e-6:
        raise ValueError(f"{name} must sum to 1; got the sum {point.sum():.9g}.")
    return np.minimum(point, upper)


def check_symmetric_matrix(matrix: Any, name: str) -> NDArray[Any]:
    """Return a finite, square and symmetric matrix as C-contiguous float32 or 64."""
    M: NDArray[Any] = check_points(matrix, name, ensure_all_finite=False)
    n = len(M)
    if M.shape != (n, n):
        raise ValueError(f"{name} must be a square matrix; got shape {M.shape}.")
    # one compiled pass for what nearly always holds
    largest, difference = asymmetry(M, resolve_n_threads(None))
    tolerance = _symmetry_tolerance(M.dtype, largest)
    if not difference <= tolerance < np.inf:
        check_points(matrix, name)  # names a cell that is not finite
        i = int(np.argmax([np.abs(M[i] - M[:, i]).max() for i in range(n)]))
        raise _asymmetry_error(M, i, int(np.argmax(np.abs(M[i] - M[:, i]))), name)
    return M


def check_symmetric_sparse(matrix: Any, name: str) -> sparse.csr_array:
    """Return a sparse matrix as a new float64 CSR array with sorted, unique columns."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be a square matrix; got shape {matrix.shape}.")
    if not matrix.shape[0]:
        raise ValueError(f"{name} must have at least one row; got shape (0, 0).")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; got dtype {matrix.dtype}.")
    dtype = matrix.dtype if matrix.dtype.kind == "f" else np.dtype(np.float64)
    M = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    M.sum_duplicates()
    if not np.isfinite(M.data).all():
        raise ValueError(f"{name} must hold finite numbers; got NaN or infinity.")
    difference = abs(M - M.T).tocoo()
    if difference.nnz:
        worst = np.argmax(difference.data)
        largest = float(np.abs(M.data).max())
        if difference.data[worst] > _symmetry_tolerance(dtype, largest):
            i, j = int(difference.row[worst]), int(difference.col[worst])
            raise _asymmetry_error(M, i, j, name)
    return M


def _symmetry_tolerance(dtype: np.dtype[Any], largest: float) -> float:
    """Return the rounding error of a user's own symmetrization."""
    return float(1e3 * np.finfo(dtype).eps * largest)


def _asymmetry_error(M: Any, i: int, j: int, name: str) -> ValueError:
    return ValueError(
        f"{name} must be symmetric; got {float(M[i, j])!r} at ({i}, {j}) and "
        f"{float(M[j, i])!r} at ({j}, {i})."
    )


def check_kernel_matrix(matrix: Any, name: str = "K") -> NDArray[Any]:
    """Return a kernel matrix: symmetric, non-negative, with a positive diagonal."""
    K = check_symmetric_matrix(matrix, name)
    check_kernel_values(K, name)
    diagonal = np.diagonal(K)
    if not (diagonal > 0).all():
        i = int(np.argmin(diagonal))
        raise ValueError(
            f"{name} must have a positive diagonal; got {float(diagonal[i])!r} at row "
            f"{i}. {_DISTANCE_HINT}"
        )
    return K


def rescale_kernel_matrix(matrix: Any, name: str) -> NDArray[Any]:
    """Return a checked kernel matrix, rescaled if its unit is extreme.

    A fit does not depend on the unit of K, as long as squares and sums do not overflow.
    """
    K = check_kernel_matrix(matrix, name)
    largest = float(K.max())
    least = K.min(axis=1)
    if (np.diagonal(K) <= least).all() and least.min() < largest:
        warn(
            f"{name} has its smallest values on the diagonal: no point is as similar "
            f"to itself as to any other. {_DISTANCE_HINT}",
            UserWarning,
        )
    if _MIN_SCALE <= largest <= _MAX_SCALE:
        return K
    # by a power of two, which rounds nothing, to a largest value between 1 and 2
    scaled: NDArray[Any] = np.ldexp(K, 1 - np.frexp(largest)[1])
    return scaled


def check_kernel_values(K: Any, name: str) -> None:
    """Refuse negative and non-finite kernel values."""
    least, most = float(K.min()), float(K.max())
    if not (np.isfinite(least) and np.isfinite(most)):
        raise ValueError(f"{name} must hold finite numbers; got NaN or infinity.")
    if least < 0:
        i, j = np.unravel_index(K.argmin(), K.shape)
        raise ValueError(
            f"Negative values in data: {name} must hold none, got {least!r} at row "
            f"{i}, column {j}. A similarity with values in [a, b] may be used as "
            "(k - a) / (b - a), with the same a and b for new points."
        )


# Data frames of pandas and polars. Neither library is imported: a frame knows the types
# of its columns.

COLUMN_HINTS = {
    "text": "Leave it out, convert numbers that were read as text, or encode it, as "
    "sklearn.preprocessing.OneHotEncoder does.",
    "categories": "Leave it out, or encode it, as sklearn.preprocessing.OneHotEncoder "
    "does.",
    "times": "Leave it out, or convert it to numbers, such as days since the first.",
    "no numbers": "Leave it out, or convert it to numbers.",
}


CATEGORIES_HINT = "Name columns of categories in `categorical_features`."


def is_frame(X: Any) -> bool:
    """Whether X has named columns, each of a type."""
    return hasattr(X, "to_numpy") and hasattr(X, "columns") and hasattr(X, "dtypes")


def check_columns(X: Any, name: str) -> None:
    """Refuse a frame with a column of anything but numbers or truth values."""
    if not is_frame(X):
        if hasattr(X, "collect"):
            raise ValueError(
                f"{name} must hold data; got a {type(X).__name__} that is not "
                f"computed. Expected {name}.collect()."
            )
        return
    check_names(X, name)
    for j, dtype in enumerate(X.dtypes):
        kind, row = column_kind(dtype), 0
        if kind == "numbers":
            continue
        cells = column_cells(X, j)
        if kind in ("text", "objects"):  # objects may well be numbers
            invalid = (i for i, cell in enumerate(cells) if not is_number(cell))
            if (row := next(invalid, -1)) < 0:
                continue
        if kind == "objects":
            kind = "text" if isinstance(cells[row], str) else "no numbers"
        cell = f" ({cells[row]!r} at row {row})" if cells else ""
        raise ValueError(
            f"{name} must hold numbers only; got {kind} in column "
            f"{X.columns[j]!r}{cell}. {COLUMN_HINTS[kind]}"
        )


def check_size_of_frame(X: Any) -> None:
    """Refuse a frame without columns or rows."""
    n, d = X.shape
    if n == 0 or d == 0:
        raise ValueError(
            f"X must have at least one {'column' if d == 0 else 'row'}; got a frame of "
            f"{n} rows and {d} columns."
        )


def check_names(X: Any, name: str) -> None:
    """Refuse a frame with two columns of the same name."""
    first: dict[object, int] = {}
    for j, column in enumerate(X.columns):
        if first.setdefault(column, j) != j:
            raise ValueError(
                f"{name} must have columns of different names; got {column!r} for "
                f"columns {first[column]} and {j}, counted from 0."
            )


def column_name(X: Any, j: int) -> str:
    """Return the name of a column in quotes, or its number."""
    names = X.columns if is_frame(X) else getattr(X, "column_names", None)
    return str(j) if names is None else repr(names[j])


def column_cells(X: Any, j: int) -> list[Any]:
    """Return the cells of a column of a frame."""
    column = X.iloc[:, j] if hasattr(X, "iloc") else X.to_series(j)
    return list(column.to_list())


def column_kind(dtype: Any) -> str:
    """Return what a column of this type holds: a key of the hints, numbers, objects."""
    if hasattr(dtype, "is_numeric"):  # polars
        name = str(dtype)
        if dtype.is_numeric() or name == "Boolean":
            return "numbers"
        if dtype.is_temporal():
            return "times"
        if name.startswith(("Categorical", "Enum")):
            return "categories"
        return "text" if name == "String" else "no numbers"
    if dtype.kind in "biufc":
        return "numbers"
    if dtype.kind in "Mm":
        return "times"
    if hasattr(dtype, "categories"):
        return "categories"
    return "objects" if dtype == np.dtype(object) else "text"


def is_number(cell: Any) -> bool:
    has_value = not isinstance(cell, str) and hasattr(cell, "__float__")
    return has_value or is_missing(cell)


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT, NA or masked."""
    if cell is None or cell is np.ma.masked or type(cell).__name__ == "NAType":
        return True
    differs = cell != cell  # no other value differs from itself
    return isinstance(differs, bool | np.bool_) and bool(differs)
