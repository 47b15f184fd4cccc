from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Floats = TypeVar("Floats", NDArray[np.float32], NDArray[np.float64])
Index = NDArray[np.int32] | NDArray[np.int64]

def product(
    starts: Index, columns: Index, values: Floats, block: Floats, n_threads: int
) -> Floats: ...
def multiply(matrix: Any, vectors: Array, n_threads: int) -> Array: ...
def similarity(
    starts: Index,
    columns: Index,
    values: Array,
    weights: Array,
    penalty: float,
    n_threads: int,
) -> Array: ...
def scale_entries(
    starts: Index, columns: Index, values: Array, factors: Array, n_threads: int
) -> Array: ...
def components(
    starts: Index, columns: Index, values: Array, bounds: Array
) -> tuple[int, NDArray[np.intc]]: ...
def aggregate(
    starts: Index, columns: Index, values: Array, strength: float
) -> tuple[NDArray[np.intc], int]: ...
def coarsen(
    starts: Index,
    columns: Index,
    values: Array,
    group: NDArray[np.intc],
    root: Array,
    count: int,
    n_threads: int,
) -> tuple[Array, Index, Index]: ...
