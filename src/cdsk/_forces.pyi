import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.float32]

WIDTH: int
SOFTENING: float

class Forces:
    def __init__(
        self,
        starts: NDArray[np.int64],
        neighbors: NDArray[np.int32],
        rates: NDArray[np.uint32],
        phases: NDArray[np.uint32],
        ids: NDArray[np.int32],
        *,
        n_negatives: int,
        seed: int,
    ) -> None: ...
    def move(
        self,
        positions: Positions,
        moved: Positions,
        epoch: int,
        step: float,
        n_threads: int,
    ) -> None: ...
