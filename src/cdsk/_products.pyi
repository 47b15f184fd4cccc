import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def inner(A: Array, B: Array, n_threads: int) -> Array: ...
def combine(C: Array, A: Array, n_threads: int) -> Array: ...
