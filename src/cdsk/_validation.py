# SPDX-License-Identifier: BSD-3-Clause
"""Checks at the door: parameters and arrays, refused in words a user can act on.

Each message says what was wrong, what was expected and what was received.
"""

import numbers
from contextlib import contextmanager
from functools import partial
from itertools import combinations_with_replacement
from operator import ge, gt, le

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn import utils

from cdsk._frames import as_numbers, check_columns, column_name
from cdsk._rows import asymmetry
from cdsk._threads import resolve_n_threads
from cdsk._warn import warn

# What X may be: frames are array-like too.
Data = ArrayLike | sparse.sparray | sparse.spmatrix

# Squared bandwidths and their inverses must be ordinary numbers.
_SMALLEST_BANDWIDTH, _LARGEST_BANDWIDTH = 1e-150, 1e150

# Largest magnitude and smallest extent of data with ordinary squared distances.
_LARGEST, _SMALLEST = 1e150, 1e-130

# Largest value of a kernel matrix that a fit takes as it is.
_SMALLEST_UNIT, _LARGEST_UNIT = 1e-100, 1e100

# What float() raises for what is no number, or no float: 10**400.
_NO_FLOAT = (TypeError, ValueError, OverflowError)

# New points that are judged at a time, and their numbers: 64 MiB. Measured in 2 and 10
# dimensions, half as many points take a tenth longer, twice as many are no faster.
_PART_ROWS, _PART_NUMBERS = 2**16, 2**23

# Rows and columns of a matrix that are compared at once.
_TILE = 128

# Distances between points; "cosine" is the Euclidean one of unit rows.
METRICS = ("euclidean", "cosine")

# Of more rows that are wrong the first are named.
_MOST_NAMED = 5


def check_points(X, name="X", *, validate=None, **options):
    """Return X as a C-contiguous float32 or float64 matrix of finite numbers.

    ``validate`` is scikit-learn's ``check_array`` or an estimator's stand-in for it.
    """
    check_columns(X, name)
    if np.ma.is_masked(X):
        place = _first_of(np.argwhere(np.ma.getmaskarray(X)), X)
        raise ValueError(
            f"{name} must not hide cells by a mask; got one{place}; expected finite "
            "numbers only."
        )
    if getattr(getattr(X, "dtype", None), "kind", None) in ("M", "m"):
        raise ValueError(
            f"{name} must hold numbers only; got {X.dtype}. Make numbers of times, "
            "such as days since the first."
        )
    if validate is None:
        validate = partial(utils.check_array, input_name=name)
    try:
        return validate(X, dtype=[np.float64, np.float32], order="C", **options)
    except (OverflowError, TypeError, ValueError) as error:
        text = str(error)
        # a missing value of pandas, or text, or 10**400
        no_number = "NAType" in text or "could not convert" in text
        # of an array the words are scikit-learn's
        no_number |= "float() argument" in text and not hasattr(X, "dtype")
        if no_number or isinstance(error, OverflowError):
            wrong = f"{name} must hold numbers only; got {_first_text(X)}."
        elif f"Input {name} contains NaN" in text:
            wrong = f"Input {name} contains NaN{_first_place(X, np.isnan)}"
        elif f"Input {name} contains infinity" in text:
            wrong = f"Input {name} contains infinity{_first_place(X, np.isinf)}"
        elif "inhomogeneous" in text:
            wrong = _said_of_unequal(X, name)
        elif text.startswith("Complex data"):  # and all of them
            wrong = f"Complex data not supported: {name} must hold real numbers."
        else:
            raise
        raise ValueError(wrong) from None


def _first_place(X, test):
    try:
        places = _places(X, test)
    except (TypeError, ValueError):  # another spelling of a missing value
        return "; expected finite numbers only."
    return f"{_first_of(places, X)}; expected finite numbers only."


def _places(X, test):
    """Row and column of every cell that the test finds, (m, 2), in order."""
    if not sparse.issparse(X):
        return np.argwhere(test(as_numbers(X)))
    cells = X.tocoo()
    found = test(cells.data)
    places = np.column_stack([cells.row[found], cells.col[found]])
    return places[np.lexsort(places.T[::-1])]


def _first_of(places, X):
    """The first of these cells of X, and how many there are."""
    row, column = places[0]
    place = f" at row {row}, column {column_name(X, column)}"
    return f"{place} ({len(places)} in all)"


def _said_of_unequal(X, name):
    """What is wrong with rows, or with cells, that have not the same length."""
    lengths = [len(row) if hasattr(row, "__len__") else 1 for row in X]
    for row, n in enumerate(lengths):
        if n != lengths[0]:
            got = f"{lengths[0]} cells at row 0 and {n} at row {row}"
            return f"{name} must have rows of the same length; got {got}."
    return f"{name} must hold numbers only; got {_first_text(X)}."


def _first_text(X):
    cells = np.asarray(X, dtype=object)
    for place, cell in np.ndenumerate(cells):
        try:
            float(cell)
        except _NO_FLOAT:
            where = ", ".join(map("{} {}".format, ("row", "column", "layer"), place))
            return f"{cell!r} at {where}" if where else repr(cell)
    return "cells of unequal shape"


def needs_dense(name, value, expected):
    """The error for a parameter that sparse points cannot have."""
    return ValueError(
        f"{name}={value!r} needs dense points; expected {expected} for a sparse X, or "
        "X.toarray() if there is room for it."
    )


def unit_rows(X):
    """Rows of a checked X over their lengths; those of zeros have no direction."""
    largest = abs(X).max(axis=1)
    if sparse.issparse(X):
        largest = largest.toarray().ravel()
    empty = np.flatnonzero(largest == 0)
    if len(empty):
        named = ", ".join(map(str, empty[:_MOST_NAMED]))
        more = ", ..." if len(empty) > _MOST_NAMED else ""
        raise ValueError(
            'metric="cosine" needs rows that have a direction; got zeros only in row'
            f"{'' if len(empty) == 1 else 's'} {named}{more} ({len(empty)} in all, "
            "counted from 0). Leave such rows out: they belong to no cluster. Or fit "
            'with metric="euclidean".'
        )
    # twice, so that no square is beyond the range of numbers
    scaled = _rows_over(X, largest)
    squares = (abs(scaled) ** 2).sum(axis=1, dtype=np.float64)
    return _rows_over(scaled, np.sqrt(squares).astype(X.dtype))


def _rows_over(X, divisors):
    if not sparse.issparse(X):
        return X / divisors[:, np.newaxis]
    values = X.data / np.repeat(divisors, np.diff(X.indptr))
    return sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)


def can_be_cut(X):
    """Whether parts of the rows of X can be had, and checked, without the others."""
    if sparse.issparse(X):
        return X.ndim == 2 and X.format == "csr"
    return (isinstance(X, np.ndarray) or hasattr(X, "iloc")) and X.ndim == 2


def parts_of_rows(X):
    """Slices of the rows of X that are small enough to be copied; one at least."""
    n, d = X.shape
    numbers = d if not sparse.issparse(X) else -(-X.nnz // max(n, 1))
    step = max(1, min(_PART_ROWS, _PART_NUMBERS // max(numbers, 1)))
    for begin in range(0, max(n, 1), step):
        yield slice(begin, begin + step)


@contextmanager
def said_of_rows(rows):
    """Say of an error which rows it counts, where they are not the first ones."""
    try:
        yield
    except ValueError as error:
        if rows.start == 0:
            raise
        raise ValueError(f"{error} Row 0 is row {rows.start} of X here.") from None


def in_one_dtype(A, B):
    """Both as C-contiguous arrays of one dtype, the wider of theirs."""
    dtype = np.result_type(A, B)
    return np.ascontiguousarray(A, dtype), np.ascontiguousarray(B, dtype)


# Between the weights of two rows: kernels have the square of it.
_WIDEST = 1e6


def check_sample_weight(sample_weight, X, is_given):
    """Weights of the rows as an array; None if all of them are 1.

    ``is_given``: X is a matrix between the rows, of which none can be left out.
    """
    if sample_weight is None:
        return None
    n = X.shape[0]
    if np.ma.isMaskedArray(sample_weight):
        raise ValueError(
            "sample_weight must not be a masked array, of whose hidden numbers it is "
            "not known what they mean; got one. Expected 0 for rows that do not count."
        )
    weights = np.asarray(sample_weight)
    # float() would read numbers from text
    kind, cells = weights.dtype.kind, weights.ravel()
    is_text = kind == "O" and any(isinstance(cell, str) for cell in cells)
    if weights.shape != (n,) or kind not in "biufO" or is_text:
        raise ValueError(
            f"sample_weight must hold a number for each of the {n} rows of X; got "
            f"shape {weights.shape} and dtype {weights.dtype}."
        )
    weights = _as_floats(weights, "sample_weight", "hold numbers").copy()
    if not (np.isfinite(weights) & (weights >= 0)).all():
        wrong = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise ValueError(f"sample_weight must be finite and not negative; got {wrong}.")
    if np.count_nonzero(weights) < 2:
        raise ValueError(
            "sample_weight must not be zero for all rows but one; got "
            f"{np.count_nonzero(weights)} rows of another weight."
        )
    positive = weights[weights > 0]
    low, high = float(positive.min()), float(positive.max())
    if not 1e-100 < low <= high <= min(1e100, _WIDEST * low):
        raise ValueError(
            "sample_weight must be between 1e-100 and 1e100 and differ by a factor of "
            f"{_WIDEST:.0e} at most, or be 0; got {low:.3g} to {high:.3g}."
        )
    if is_given and not weights.all():
        raise ValueError(
            "sample_weight must be positive where X is a matrix between the samples; "
            "got 0. Leave out the row and the column instead."
        )
    return None if (weights == 1).all() else weights


def check_integer(value, name, least, most=None):
    """Refuse anything but an integer of at least ``least`` and at most ``most``."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
        bounded = f"at least {least}" + ("" if most is None else f" and at most {most}")
        raise ValueError(f"{name} must be an integer of {bounded}; got {value!r}.")
    return int(value)


def check_n_clusters(n_clusters, n_samples):
    """Refuse anything but an integer between 1 and the number of samples."""
    check_integer(n_clusters, "n_clusters", 1)
    if n_clusters > n_samples:
        raise ValueError(
            "n_clusters must be at most the number of samples; got n_clusters="
            f"{n_clusters} and n_samples={n_samples}."
        )


def check_number(value, name, *, above=None, at_least=None, at_most=None):
    """Refuse anything but a finite real number within the bounds."""
    bounds = (">", above, gt), (">=", at_least, ge), ("<=", at_most, le)
    in_use = [bound for bound in bounds if bound[1] is not None]
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else np.nan
    except OverflowError:  # 10**400
        number = np.inf
    within = all(holds(number, bound) for _, bound, holds in in_use)
    if not (np.isfinite(number) and within):
        bounded = " and ".join(f"{sign} {bound}" for sign, bound, _ in in_use)
        expected = f"a number {bounded}" if bounded else "a finite number"
        raise ValueError(f"{name} must be {expected}; got {value!r}.")
    return number


def check_random_state(random_state):
    """The RandomState that ``random_state`` is or seeds."""
    try:
        return utils.check_random_state(random_state)
    except ValueError:
        raise ValueError(
            "random_state must be an integer between 0 and 2**32 - 1, a RandomState or "
            f"None; got {random_state!r}."
        ) from None


def largest_coordinate(n_features):
    """Magnitude of coordinates whose squared distances are ordinary numbers."""
    return float(_LARGEST / np.sqrt(n_features))


def said_of_coordinates(largest, got):
    """What is wrong with coordinates beyond the ``largest``."""
    return (
        f"X must hold coordinates of magnitude {largest:.1e} at most, so that squared "
        f"distances are ordinary numbers; got {got}. Expected data in another unit."
    )


def check_extent(X):
    """Refuse data whose squared distances are no ordinary numbers."""
    largest = largest_coordinate(X.shape[1])
    size = max(float(X.max()), -float(X.min()))
    if size > largest:
        raise ValueError(said_of_coordinates(largest, f"{size:.1e}"))
    if sparse.issparse(X):
        extent = float((X.max(axis=0) - X.min(axis=0)).max())
    else:
        extent = float(np.ptp(X, axis=0).max())
    if 0 < extent < _SMALLEST:
        raise ValueError(
            f"X must vary by {_SMALLEST:.0e} at least, so that squared distances are "
            f"ordinary numbers; got a largest extent of {extent:.1e}. Expected data in "
            "another unit."
        )


def check_choice(value, name, choices, or_else=""):
    """Refuse anything but one of ``choices``; ``or_else`` names what else there is."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be {or_else}one of {listed}; got {value!r}.")
    return value


def _as_floats(values, name, wanted):
    try:
        return np.asarray(values, dtype=np.float64, order="C")
    except _NO_FLOAT:
        got = _first_text(values)
        raise ValueError(f"{name} must {wanted}; got {got}.") from None


def check_bandwidth(bandwidth, n, name="bandwidth"):
    """Return one positive bandwidth per point as a float64 array of shape (n,)."""
    wanted = f"be a positive number or an array of {n} positive numbers"
    values = _as_floats(bandwidth, name, wanted)
    if values.ndim == 0:
        values = np.full(n, values)
    if values.shape != (n,):
        raise ValueError(
            f"{name} must be one number or an array of shape ({n},), one bandwidth per "
            f"point; got shape {values.shape}."
        )
    wrong = ~((values >= _SMALLEST_BANDWIDTH) & (values <= _LARGEST_BANDWIDTH))
    if wrong.any():
        raise ValueError(
            f"{name} must be positive and finite (between {_SMALLEST_BANDWIDTH:g} and "
            f"{_LARGEST_BANDWIDTH:g}); got {float(values[wrong][0])!r}."
        )
    return np.ascontiguousarray(values)


def check_simplex_point(values, n, upper, name):
    """Return values as a new float64 array: n of them in [0, upper] with sum 1."""
    values = _as_floats(values, name, "hold numbers")
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},); got shape {values.shape}.")
    inside = (values >= 0) & (values <= upper * (1 + 1e-9))
    if not inside.all():
        raise ValueError(
            f"{name} must lie between 0 and the upper bound {upper:.6g}; got "
            f"{float(values[~inside][0])!r}."
        )
    if abs(values.sum() - 1.0) > 1e-6:
        raise ValueError(f"{name} must sum to 1; got the sum {values.sum():.9g}.")
    return np.minimum(values, upper)


def check_symmetric_matrix(M, name):
    """Return M as C-contiguous float32 or float64: finite, square and symmetric."""
    given, M = M, check_points(M, name, ensure_all_finite=False)
    n = len(M)
    if M.shape == (n, n):
        # one compiled pass for what nearly always holds
        largest, difference = asymmetry(M, resolve_n_threads(None))
        if difference <= _tolerance(M.dtype, largest) < np.inf:
            return M
    M = check_points(given, name)
    if M.shape != (n, n):
        raise ValueError(f"{name} must be a square matrix; got shape {M.shape}.")
    tolerance = _tolerance(M.dtype, max(float(M.max()), -float(M.min())))
    # tiles: two of them fit a cache, and no second n x n array is made
    for i, j in combinations_with_replacement(range(0, n, _TILE), 2):
        rows, columns = slice(i, i + _TILE), slice(j, j + _TILE)
        difference = np.abs(M[rows, columns] - M[columns, rows].T)
        if difference.max() > tolerance:
            worst = np.unravel_index(np.argmax(difference), difference.shape)
            i, j = i + worst[0], j + worst[1]
            raise ValueError(
                f"{name} must be symmetric; got {float(M[i, j])!r} at ({i}, {j}) and "
                f"{float(M[j, i])!r} at ({j}, {i})."
            )
    return M


def check_symmetric_sparse(M, name):
    """Return a sparse M as a new float64 CSR array with sorted columns, each once."""
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise ValueError(f"{name} must be a square matrix; got shape {M.shape}.")
    if M.shape[0] == 0:
        raise ValueError(f"{name} must have a row at least; got shape {M.shape}.")
    if M.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; got the dtype {M.dtype}.")
    eps = np.finfo(M.dtype if M.dtype.kind == "f" else np.float64).eps
    M = sparse.csr_array(M, dtype=np.float64, copy=True)
    M.sum_duplicates()
    if not np.isfinite(M.data).all():
        raise ValueError(f"{name} must hold finite numbers; got NaN or infinity.")
    difference = abs(M - M.T).tocoo()
    if difference.nnz and difference.data.max() > 1e3 * eps * np.abs(M.data).max():
        worst = np.argmax(difference.data)
        i, j = int(difference.row[worst]), int(difference.col[worst])
        raise ValueError(
            f"{name} must be symmetric; got {float(M[i, j])!r} at ({i}, {j}) and "
            f"{float(M[j, i])!r} at ({j}, {i})."
        )
    return M


def _tolerance(dtype, largest):
    """What rounding leaves of a user's own symmetrisation."""
    return 1e3 * np.finfo(dtype).eps * largest


def check_kernel_matrix(K, name="K"):
    """Return K checked as a kernel matrix: symmetric, non-negative, diagonal > 0."""
    K = check_symmetric_matrix(K, name)
    check_kernel_values(K, name)
    diagonal = np.diagonal(K)
    if not (diagonal > 0).all():
        i = int(np.argmin(diagonal))
        raise ValueError(
            f"{name} must have a positive diagonal; got {float(diagonal[i])!r} at row "
            f"{i}. {_IS_IT_A_DISTANCE}"
        )
    return K


_IS_IT_A_DISTANCE = (
    "Is this a distance matrix D? exp(-D**2 / (2 * b**2)) makes a similarity of it, "
    "with a bandwidth b such as half the distance of near points."
)


def ordinary_kernel_matrix(K, name):
    """K checked as a kernel matrix for a fit, and scaled if its unit is extreme.

    A fit does not depend on the unit of K, as long as squares and sums are ordinary
    numbers. A matrix in which points are least similar to themselves is warned of.
    """
    K = check_kernel_matrix(K, name)
    largest = float(K.max())
    least = K.min(axis=1)
    if (np.diagonal(K) <= least).all() and least.min() < largest:
        warn(
            f"{name} has its smallest values on the diagonal: no point is as similar "
            f"to itself as to any other. {_IS_IT_A_DISTANCE}",
            UserWarning,
        )
    if _SMALLEST_UNIT <= largest <= _LARGEST_UNIT:
        return K
    # by a power of two, which rounds nothing, to a largest value between 1 and 2
    return np.ldexp(K, 1 - np.frexp(largest)[1])


def check_kernel_values(K, name):
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
