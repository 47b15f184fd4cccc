from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# float32 or float64, the same for all arguments so marked
F = TypeVar("F", np.float32, np.float64)

def simd_level() -> str: ...
def gaussian_gram(
    X: NDArray[F], bandwidth: Array, out: NDArray[F], n_threads: int
) -> None: ...
def gaussian_rows(
    A: NDArray[F],
    B: NDArray[F],
    bandwidth_a: Array,
    bandwidth_b: Array,
    out: NDArray[F],
    n_threads: int,
) -> None: ...
def gaussian_log_votes(
    A: NDArray[F],
    B: NDArray[F],
    bandwidth_a: Array,
    bandwidth_b: Array,
    alpha: Array,
    offsets: NDArray[np.intp],
    out: Array,
    n_threads: int,
) -> None: ...
def product(K: NDArray[F], V: Array, out: Array, n_threads: int) -> None: ...
def similarity(
    K: NDArray[F],
    alpha: Array,
    penalty: float,
    out: NDArray[F],
    degrees: Array,
    n_threads: int,
) -> None: ...
