from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from cdsk._rows import RowSource

Array = NDArray[np.float64]

class Status(IntEnum):
    CONVERGED = 0
    MAX_ITER = 1
    STALLED = 2

def solve(
    rows: RowSource, x: Array, g: Array, upper: float, tol: float, max_iter: int
) -> tuple[Status, float, int]: ...
def kkt_gap(x: Array, g: Array, upper: float) -> float: ...
