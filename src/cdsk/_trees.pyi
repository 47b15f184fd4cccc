import numpy as np
from numpy.typing import NDArray

def spanning_tree(edges: NDArray[np.int32], tree: NDArray[np.int32]) -> int: ...
def merge_clusters(
    tree: NDArray[np.int32],
    sizes: NDArray[np.int64],
    n_clusters: int,
    limit: float,
    labels: NDArray[np.int32],
) -> None: ...
def cut_edges(
    order: NDArray[np.int32],
    parent: NDArray[np.int32],
    children: NDArray[np.int32],
    sizes: NDArray[np.int64],
    n_clusters: int,
    least: float,
    labels: NDArray[np.int32],
) -> float: ...
