# SPDX-License-Identifier: BSD-3-Clause
"""Cost of the definiteness test and of the split of a similarity, on one thread.

usage: python -m benchmarks.studies.indefinite_cost [N ...]

Three kernels of N points: locally scaled with factor 0.5 (few negative eigenvalues,
close to 0) and 1 (a third of the spectrum), and a Gaussian plus bipartite graphs (few,
far from 0). Prints the processor time in seconds of the Cholesky test, of the block
method, and of LAPACK.
"""

import sys
import time

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

import cdsk
from cdsk._operators import indefinite
from cdsk._operators.dense import DenseKernel


def kernels(n):
    X = make_blobs(n, 2, centers=5, random_state=0)[0]
    scale = NearestNeighbors(n_neighbors=7).fit(X).kneighbors()[0][:, -1]
    yield "local 0.5", cdsk.gaussian_gram(X, 0.5 * scale)
    yield "local 1", cdsk.gaussian_gram(X, scale)
    group = np.arange(n) % 6
    yield (
        "bipartite",
        cdsk.gaussian_gram(X, 1.0) + 0.5 * (group == group[:, np.newaxis] ^ 1),
    )


def seconds(function, *arguments):
    began = time.process_time()
    result = function(*arguments)
    return time.process_time() - began, result


def main():
    for n in map(int, sys.argv[1:] or ("1000", "2000")):
        for name, K in kernels(n):
            matrix = DenseKernel(K, 1)
            tested, _ = seconds(indefinite._is_semidefinite_kernel, matrix)
            block, found = seconds(indefinite._factor_by_lanczos, matrix)
            dense, factor = seconds(indefinite._factor_by_lapack, matrix)
            complete = "complete" if found is not None else "given up"
            print(
                f"n={n} {name:10s} {len(factor):4d} negative: test {tested:.2f} s, "
                f"block {block:.2f} s ({complete}), LAPACK {dense:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
