# SPDX-License-Identifier: BSD-3-Clause
"""When is the approximate search for neighbors faster, and how many does it find?

usage: python -m benchmarks.studies.approximate [DATA] [--sizes 20000 70000]
       [--shapes 100000x10 100000x50 20000x100]

Searches the 20 nearest neighbors of so many points of every archive of the folder that
has them (.npz, as in sets.py), and of blobs of the given shapes.
Prints processor times on one thread: of the exact search, of the approximate one with
its exact distances, and the share of the neighbors it found. The approximate search is
compiled before, and that time is printed. docs/notes/2026-11-19-approximate.md.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

from benchmarks.studies import sets
from cdsk._approximate import find_approximately
from cdsk._candidates import N_NEIGHBORS
from cdsk._neighbors import Neighbors

ROUNDING = 1e-9


def problems(options):
    """Yield (name, X)."""
    for path in sorted(Path(options.data).glob("*.npz")) if options.data else ():
        for n in options.sizes:
            X, _ = sets.read_archive(path, n)
            if len(X) == n:
                yield f"{path.stem}, {n} x {X.shape[1]}", X
    for n, d in (map(int, shape.split("x")) for shape in options.shapes):
        X = make_blobs(n, d, centers=10, cluster_std=1.0, random_state=0)[0]
        yield f"blobs, {n} x {d}", X


def timed(search):
    began = time.process_time()
    return search(), time.process_time() - began


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?")
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 70_000])
    shapes = ["100000x10", "100000x50", "20000x100"]
    parser.add_argument("--shapes", nargs="+", default=shapes)
    options = parser.parse_args()
    small = np.random.RandomState(0).standard_normal((50, 5))
    _, seconds = timed(lambda: find_approximately(small, 20))
    print(f"import and compilation: {seconds:.1f} s\n")
    print("| points | exact, s | approximate, s | recall |\n| --- | --- | --- | --- |")
    for name, X in problems(options):
        k = min(N_NEIGHBORS, len(X) - 1)
        exact, slow = timed(lambda X=X, k=k: Neighbors(X, k))
        found, fast = timed(lambda X=X, k=k: find_approximately(X, k)[0])
        recall = np.mean(found <= exact.distances[:, -1:] * (1 + ROUNDING))
        print(f"| {name} | {slow:.1f} | {fast:.1f} | {recall:.3f} |", flush=True)


if __name__ == "__main__":
    main()
