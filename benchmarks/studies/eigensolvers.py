# SPDX-License-Identifier: BSD-3-Clause
"""Compare eigensolvers of the spectral step: time, residual, missed eigenvalues.

usage: python -m benchmarks.studies.eigensolvers DATA [--cap 800]

DATA is a folder as in sets.py. Weights are uniform, and the start is random. Times are
processor times on one thread, of the eigenpairs alone. The components, which all
solvers get, and the band ordering, which all kernels of a graph share, are computed
before. ``lobpcg`` is SciPy's, called as a user would. Prints the tables of
docs/notes/2026-11-17-eigensolvers.md in ten minutes.
"""

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.sparse.linalg import lobpcg
from threadpoolctl import threadpool_limits

from benchmarks.asv.stages import data
from benchmarks.studies import sets
from benchmarks.studies.defaults import graph_of
from cdsk import _eigensolvers as eigen
from cdsk import _multilevel as banded
from cdsk._candidates import FACTORS, N_NEIGHBORS
from cdsk._spectral import _component_vectors

SETS_FACTORS = FACTORS[::2]  # 1, 0.35, 0.18
IMAGES = 10_000
DENSE_POINTS = 4000
SIZES = (50, 100, 150, 200, 250, 300, 400, 600, 800)
REPEATS = 20


# ---------------------------------------------------------------- solvers


def ours(solver):
    """Return one of cdsk's solvers, without its limits on the size of the problem."""

    def solve(similarity, known, k):
        rng = np.random.RandomState(0)
        with patch.object(eigen, "DENSE_SIZE", 0):
            found = eigen.leading_eigenpairs(
                similarity, known, k, solver=solver, rng=rng
            )
        return found.vectors

    return solve


def plain_eigsh(similarity, known, k):
    with patch.object(banded, "MAX_OPERATIONS", 0):
        return ours("eigsh")(similarity, known, k)


def plain_lobpcg(similarity, known, k, inverse=None):
    def on_columns(product):
        return lambda columns: product(np.ascontiguousarray(columns.T)).T

    _, columns = lobpcg(
        on_columns(similarity.normalized_product),
        np.random.RandomState(0).standard_normal((similarity.kernel.n, k)),
        M=None if inverse is None else on_columns(inverse),
        Y=known.T,
        tol=eigen.TOLERANCE,
        maxiter=eigen.MAX_BLOCK_PRODUCTS,
    )
    return np.ascontiguousarray(columns.T)


def factorized_at_any_cost(similarity, known, k):
    with (
        patch.object(banded, "MAX_OPERATIONS", np.inf),
        patch.object(
            banded.BandedOrdering, "cost_in_products", 0
        ),  # no products before
    ):
        return ours("eigsh")(similarity, known, k)


def preconditioned_lobpcg(similarity, known, k):
    return plain_lobpcg(similarity, known, k, similarity.factorize(eigen.SHIFTS[0]))


BANDED = {
    "`eigsh` on banded factors": factorized_at_any_cost,
    "`lobpcg`, preconditioned by factors": preconditioned_lobpcg,
}
PRODUCTS = {
    "`eigsh`, plain": plain_eigsh,
    "block Lanczos": ours("block_lanczos"),
    "`lobpcg`, plain": plain_lobpcg,
    "randomized": ours("randomized"),
}
DENSE = {"LAPACK, dense": ours("dense")}


# ---------------------------------------------------------------- one step


@dataclass
class Outcome:
    """Result of a solver; ``values`` include those of the components."""

    seconds: float
    residual: float
    values: np.ndarray

    @property
    def converged(self):
        return self.residual <= eigen.TOLERANCE


def similarity_of(kernel):
    return kernel.similarity(data.uniform(kernel.n), kernel.n * data.LAM)


def outcome(solve, similarity, n_clusters, repeats=1):
    """Return the ``Outcome`` of a solver, None if the components are sufficient."""
    known, _ = _component_vectors(similarity, n_clusters)
    k = n_clusters - len(known)
    if not k:
        return None
    seconds = np.inf
    for _ in range(repeats):
        began = time.process_time()
        vectors = solve(similarity, known, k)
        seconds = min(seconds, time.process_time() - began)
    images = similarity.normalized_product(vectors)
    values = np.sum(vectors * images, axis=1)
    residuals = np.linalg.norm(images - values[:, np.newaxis] * vectors, axis=1)
    values = np.concatenate([np.ones(len(known)), values])
    return Outcome(seconds, float(residuals.max()), np.sort(values)[::-1])


def exact_values(similarity, n_clusters):
    matrix = similarity.normalized_product(np.eye(similarity.kernel.n))
    return np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[::-1][:n_clusters]


def missed(exact, found):
    """Return the number of exact eigenvalues without a match among those found."""
    found, count = list(found), 0
    for value in exact:
        while found and found[0] > value + eigen.TOLERANCE:
            found.pop(0)
        if found and found[0] >= value - eigen.TOLERANCE:
            found.pop(0)
        else:
            count += 1
    return count


# ---------------------------------------------------------------- tables


def markdown(title, head, lines):
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for cells in lines:
        print(f"| {' | '.join(cells)} |")
    sys.stdout.flush()


def graphs(options):
    """Compare solvers on the neighbor graphs of all sets, by sums over the sets."""
    solvers = BANDED | PRODUCTS | DENSE
    found = {name: {factor: [] for factor in SETS_FACTORS} for name in solvers}
    for name, X, y, counted in sets.load(options.data, options.cap):
        c = len(np.unique(y[counted]))
        graph = graph_of(X, c, N_NEIGHBORS)
        for factor in SETS_FACTORS:
            kernel = graph.kernel(factor * graph.neighbors.scales, 1)
            similarity = similarity_of(kernel)
            exact = exact_values(similarity, c)
            for solver, solve in solvers.items():
                result = outcome(solve, similarity, c)
                if result is not None:
                    count = missed(exact, result.values)
                    found[solver][factor].append((result, count))
        print(name, file=sys.stderr, flush=True)
    steps = sum(map(len, found[next(iter(solvers))].values()))
    head = ["solver", *(f"{f:.2g}" for f in SETS_FACTORS), "all", "largest residual",
            "not converged", "missed", "unnoticed"]  # fmt: skip
    lines = []
    for solver, by_factor in found.items():
        seconds = [sum(r.seconds for r, _ in part) for part in by_factor.values()]
        every = [pair for part in by_factor.values() for pair in part]
        lines.append(
            [solver, *(f"{s:.2f}" for s in (*seconds, sum(seconds))),
             f"{max((r.residual for r, _ in every), default=0.0):.0e}",
             f"{sum(not r.converged for r, _ in every)}",
             f"{sum(count for _, count in every)}",
             f"{sum(count for r, count in every if r.converged)}"]
        )  # fmt: skip
    markdown(
        f"{steps} spectral steps on neighbor graphs, seconds by factor:", head, lines
    )


def images(options):
    """Compare solvers on MNIST, with banded factors at any cost."""
    path = Path(options.data, "mnist.npz")
    if not path.is_file():
        print("\nThere is no mnist.npz in the folder, so no table of it.")
        return
    X, y = sets.read_archive(path, IMAGES)
    c = len(np.unique(y))
    graph = graph_of(X, c, N_NEIGHBORS)
    solvers = {"`eigsh` on banded factors": factorized_at_any_cost} | PRODUCTS
    lines = []
    for factor in FACTORS:
        similarity = similarity_of(graph.kernel(factor * graph.neighbors.scales, 1))
        results = [outcome(solve, similarity, c) for solve in solvers.values()]
        # Ritz values never exceed the eigenvalues they approximate
        best = np.max([r.values for r in results], axis=0)
        cells = [cell(r, missed(best, r.values)) for r in results]
        lines.append([f"{factor:.2g}", f"{1 - best[-1]:.1e}", *cells])
        print(*lines[-1], file=sys.stderr, flush=True)
    markdown(
        f"MNIST, {len(X)} x {X.shape[1]}, c = {c}, half-width of the band "
        f"{graph.ordering.width};\nin brackets eigenvalues missed:",
        ["factor", "1 - last", *solvers],
        lines,
    )


def cell(result, count):
    text = f"{result.seconds:.2f} s, {result.residual:.0e}"
    return text + (f" ({count})" if count else "")


def dense(options):
    """Compare solvers on a dense kernel."""
    similarity = similarity_of(data.kernel(data.blobs(DENSE_POINTS)[0], 1))
    exact = exact_values(similarity, data.CLUSTERS)
    lines = []
    for name, solve in (PRODUCTS | DENSE).items():
        result = outcome(solve, similarity, data.CLUSTERS)
        count = missed(exact, result.values)
        seconds, residual = f"{result.seconds:.2f}", f"{result.residual:.0e}"
        lines.append([name, seconds, residual, str(count)])
    markdown(
        f"Dense Gaussian kernel, {DENSE_POINTS} points, c = {data.CLUSTERS}:",
        ["solver", "seconds", "residual", "missed"],
        lines,
    )


def small(n):
    """Yield (name, solver other than LAPACK, clusters, similarities) of n points."""
    for name, d in (("plane", 2), ("30 features", 30)):
        X = np.random.RandomState(0).standard_normal((n, d))
        graph = graph_of(X, 3, N_NEIGHBORS)
        scales = graph.neighbors.scales
        kernels = [graph.kernel(factor * scales, 1) for factor in SETS_FACTORS]
        yield name, "eigsh", 3, [similarity_of(kernel) for kernel in kernels]
    kernel = data.kernel(data.blobs(n)[0], 1)
    yield "dense kernel", "block_lanczos", data.CLUSTERS, [similarity_of(kernel)]


def sizes(options):
    """Find the size up to which LAPACK is fastest (DENSE_SIZE)."""
    head, lines = ["n"], []
    for n in SIZES:
        lines.append([str(n)])
        for name, solver, c, similarities in small(n):
            if n == SIZES[0]:
                head += [f"{name}: {solver}", "LAPACK"]
            for way in (solver, "dense"):
                results = [outcome(ours(way), s, c, REPEATS) for s in similarities]
                # None if there is nothing to solve
                seconds = np.mean([r.seconds for r in results if r])
                lines[-1].append(f"{1e3 * seconds:.2f}")
    markdown(
        "Small problems, milliseconds; neighbor graphs of normal points with c = 3, "
        f"mean of the three\nfactors, and a dense kernel of blobs with c = "
        f"{data.CLUSTERS}:",
        head,
        lines,
    )


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, default=800)
    options = parser.parse_args()
    if not any(True for _ in sets.load(options.data, 2)):
        parser.error(f"no data sets in {options.data}; see benchmarks/studies/sets.py")
    # unresolved eigenvalues of lobpcg are counted in the tables
    warnings.filterwarnings("ignore", "Exited")
    with threadpool_limits(1):
        for study in (sizes, dense, graphs, images):
            study(options)


if __name__ == "__main__":
    main()
