import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def eigh(matrix: Array) -> tuple[Array, Array]: ...
def largest_eigenpairs(matrix: Array, m: int) -> tuple[Array, Array]: ...
