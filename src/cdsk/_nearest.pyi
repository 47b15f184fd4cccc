from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

# float32 or float64, the same for all arguments so marked
F = TypeVar("F", np.float32, np.float64)

def nearest(
    A: NDArray[F],
    B: NDArray[F],
    itself: bool,
    indices: NDArray[np.intp],
    distances: NDArray[np.float64],
    n_threads: int,
) -> None: ...
