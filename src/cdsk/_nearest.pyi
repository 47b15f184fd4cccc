from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_POINTS: int

def check_n_points(n: int) -> None: ...
def order_points(X: NDArray[Any], order: NDArray[np.int32]) -> None: ...

class Tiles:
    def __init__(self, X: NDArray[Any], n_threads: int = 1) -> None: ...
    def nearest_others(
        self,
        indices: NDArray[np.int32],
        distances: NDArray[np.float64],
        n_threads: int,
        progress: Callable[[float], object] | None = None,
    ) -> None: ...
    def nearest_to(
        self,
        A: NDArray[Any],
        indices: NDArray[np.int32],
        distances: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...
