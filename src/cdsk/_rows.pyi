import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

class RowSource:
    @property
    def n(self) -> int: ...
    @property
    def diagonal(self) -> Array: ...
    def row_array(self, i: int) -> Array: ...

class StoredRows(RowSource):
    def __init__(self, matrix: NDArray[np.floating]) -> None: ...

class CachedRows(RowSource):
    def __init__(self, rows: RowSource, bytes: int) -> None: ...

class SparseRows(RowSource):
    def __init__(
        self,
        starts: NDArray[np.intp],
        columns: NDArray[np.intp],
        values: Array,
        diagonal: Array,
    ) -> None: ...

class HadamardRows(RowSource):
    def __init__(self, rows: RowSource, vectors: Array, scale: float) -> None: ...

class NegativeRows:
    @property
    def diagonal(self) -> Array: ...
    def __init__(self, first: Array, second: Array | None = None) -> None: ...

class AbsoluteRows(RowSource):
    def __init__(self, rows: RowSource, negative: NegativeRows) -> None: ...

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
