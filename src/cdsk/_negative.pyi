import numpy as np
from numpy.typing import NDArray

from cdsk._rows import RowSource

Array = NDArray[np.float64]

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
    lam: float,
    degrees: Array,
    negligible: float,
) -> tuple[NDArray[np.intc], NDArray[np.intc], Array]: ...
def components(
    rows: RowSource,
    negative_rows: NegativeRows,
    alpha: Array,
    lam: float,
    degrees: Array,
    negligible: float,
) -> tuple[int, NDArray[np.intp]]: ...
