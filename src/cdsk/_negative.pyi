import numpy as np
from numpy.typing import NDArray

from cdsk._rows import RowSource

Array = NDArray[np.float64]

class AbsoluteRows(RowSource):
    def __init__(self, rows: RowSource, factor: Array, transpose: Array) -> None: ...

def clipped_pairs(
    rows: RowSource,
    factor: Array,
    transpose: Array,
    alpha: Array,
    lam: float,
    degrees: Array,
    negligible: float,
) -> tuple[NDArray[np.intc], NDArray[np.intc], Array]: ...
def components(
    rows: RowSource,
    factor: Array,
    transpose: Array,
    alpha: Array,
    lam: float,
    degrees: Array,
    negligible: float,
) -> tuple[int, NDArray[np.intp]]: ...
