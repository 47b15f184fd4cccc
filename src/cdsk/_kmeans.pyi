import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def seed_centers(
    points: Array, weights: Array, n_clusters: int, uniforms: Array
) -> Array: ...
def lloyd(
    points: Array, weights: Array, first: Array, tol: float, n_threads: int
) -> tuple[NDArray[np.int64], Array, float]: ...
