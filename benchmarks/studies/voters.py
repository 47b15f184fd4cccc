# SPDX-License-Identifier: BSD-3-Clause
"""Which partitions should vote: mean scores of several groups of voters.

usage: python -m benchmarks.studies.voters DATA [--cap 800]

DATA is a folder as in sets.py. Every set is fitted once, and the selection is repeated
among some of its partitions: those of the kernels on the neighbor graph by learned
weights, with the kernel on all pairs, by the initial weights, by spanning trees, with
wider kernels on all pairs. Prints the mean NMI and ARI of each group, of the sets at
even and at odd places and of blobs and moons in noise.
docs/notes/2026-11-18-voters.md discusses them.
"""

import argparse
import warnings
from dataclasses import replace
from unittest import mock

import numpy as np

from benchmarks.studies import sets
from benchmarks.studies.defaults import noisy
from cdsk import CDSK, _candidate_fits
from cdsk._candidates import make_candidates
from cdsk._pairwise import estimate_bandwidth
from cdsk._partition_choice import select_partition

# Which partitions vote, by their names; wide kernels only where they are named.
GROUPS = {
    "learned": lambda name: not _is_full(name) and not _is_new(name),
    "learned, full": lambda name: not _is_new(name),
    "learned, full, initial": lambda name: "tree" not in name,
    "learned, full, trees": lambda name: not name.endswith("initial"),
    "all": lambda name: True,
}
WIDE_GROUPS = {
    "all, wide 0.25": lambda name: _has_wide(name, "0.25"),
    "all, wide 0.5": lambda name: _has_wide(name, "0.5"),
    "all, wide 1": lambda name: _has_wide(name, "1"),
    "all, wide 0.5 for full": lambda name: (
        _has_wide(name, "0.5") and not _is_full(name)
    ),
    "all, all wide": lambda name: True,
}
# Bandwidths of wide kernels on all pairs, in units of the median distance.
WIDE = 0.25, 0.5, 1.0
SEEDS = range(100, 130)


def _is_full(name):
    return name.startswith("bandwidth")


def _is_new(name):
    return name.endswith("initial") or "tree" in name


def _has_wide(name, factor):
    return not name.startswith("wide") or name.split(",")[0] == f"wide {factor}"


def add_wide(X, context, **options):
    """Return the candidates of a fit and the wide kernels."""
    candidates = make_candidates(X, context, **options)
    median = estimate_bandwidth(X, "median", context.n_threads)
    full = candidates[-1]
    for factor in WIDE:
        name, bandwidth = f"wide {factor:g}", factor * median
        changed = {"name": name, "bandwidth": bandwidth, "factor": None}
        candidates.append(replace(full, X=X, graph=None, **changed))
    return candidates


def record(X, n_clusters, add=add_wide, **parameters):
    """Fit X; return the arguments of its selection and the points of the rows.

    ``add(X, context, **options)`` makes the candidates of the fit.
    """
    seen = {}

    def select(names, partitions, *args, **options):
        seen.update(names=names, partitions=partitions, args=args, options=options)
        return select_partition(names, partitions, *args, **options)

    # all candidates vote
    replaced = {
        "select_partition": select,
        "make_candidates": add,
        "_is_decided": lambda *_: False,
    }
    with mock.patch.multiple(_candidate_fits, **replaced):
        model = CDSK(n_clusters, random_state=0, n_threads=1, **parameters).fit(X)
    return seen, model._predictor.points.inverse


def select_among(kept, seen, n_args=None):
    """Return the partition that some of those of a fit select.

    ``n_args=1`` leaves out the neighbor graph, and so the cohesion.
    """
    names, partitions = ([seen[k][i] for i in kept] for k in ("names", "partitions"))
    resolved = [seen["options"]["resolved"][i] for i in kept]
    options = seen["options"] | {"resolved": resolved}
    choice = select_partition(names, partitions, *seen["args"][:n_args], **options)
    return partitions[choice.chosen]


def winners(X, n_clusters):
    """Return the labels that every group of voters selects."""
    seen, inverse = record(X, n_clusters)
    narrow = [name for name in seen["names"] if not name.startswith("wide")]
    labels = {}
    for group, votes in (GROUPS | WIDE_GROUPS).items():
        names = seen["names"] if group in WIDE_GROUPS else narrow
        kept = [
            i for i, name in enumerate(seen["names"]) if name in names and votes(name)
        ]
        labels[group] = select_among(kept, seen)[inverse]
    return labels


def problems(options):
    """Yield (group of sets, X, y, scored points)."""
    for i, (_, X, y, counted) in enumerate(sets.load(options.data, options.cap)):
        yield ("even", "odd")[i % 2], X, y, counted
    for seed in SEEDS:
        for _, X, y in noisy(np.random.RandomState(seed), seed):
            yield "noise", X, y, y >= 0


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, default=800)
    warnings.simplefilter("ignore")
    found = {}
    for part, X, y, counted in problems(parser.parse_args(arguments)):
        for group, labels in winners(X, len(np.unique(y[counted]))).items():
            scores = sets.scores(y, labels, counted)
            found.setdefault((group, part), []).append(scores)
    for (group, part), scores in found.items():
        nmi, ari = np.mean(scores, axis=0)
        print(f"{group:24s} {part:6s} {len(scores):4d}  {nmi:.3f} / {ari:.3f}")


if __name__ == "__main__":
    main()
