import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

class RowSource:
    @property
    def n(self) -> int: ...
    @property
    def diagonal(self) -> Array: ...
    @property
    def row_work(self) -> float: ...
    def row_array(self, i: int) -> Array: ...

class StoredRows(RowSource):
    def __init__(self, matrix: NDArray[np.floating]) -> None: ...

class CachedRows(RowSource):
    def __init__(self, rows: RowSource, bytes: int) -> None: ...

class SparseRows(RowSource):
    def __init__(
        self,
        starts: NDArray[np.integer],
        columns: NDArray[np.integer],
        values: Array,
        diagonal: Array,
    ) -> None: ...
    def hadamard(self, vectors: Array, scale: float, n_threads: int) -> SparseRows: ...

class HadamardRows(RowSource):
    def __init__(self, rows: RowSource, vectors: Array, scale: float) -> None: ...

class NegativeRows:
    @property
    def diagonal(self) -> Array: ...
    @property
    def row_work(self) -> float: ...
    def __init__(self, first: Array, second: Array | None = None) -> None: ...

class AbsoluteRows(RowSource):
    def __init__(self, rows: RowSource, negative: NegativeRows) -> None: ...

def asymmetry(matrix: NDArray[np.floating], n_threads: int) -> tuple[float, float]: ...
def clipped_pairs(
    rows: RowSource,
    negative_rows: NegativeRows,
    alpha: Array,
    penalty: float,
    degrees: Array,
    negligible: float,
) -> tuple[NDArray[np.intc], NDArray[np.intc], Array]: ...
def components(
    rows: RowSource,
    negative_rows: NegativeRows | None,
    alpha: Array,
    penalty: float,
    degrees: Array,
    negligible: float,
) -> tuple[int, NDArray[np.intp]]: ...
