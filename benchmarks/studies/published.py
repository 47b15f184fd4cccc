# SPDX-License-Identifier: BSD-3-Clause
"""The public clustering benchmark suite: CDSK beside published scores of others.

usage: python -m benchmarks.studies.published DATA PUBLISHED [--index nmi] [--sets]

DATA is a folder as in sets.py. PUBLISHED is a folder with benchmarks_details.md of
genieclust (.devel/sphinx/weave in https://github.com/gagolews/genieclust), the scores
of twelve methods by data set. CDSK is fitted and scored as they were: on whole sets,
once for each number of clusters in a set's reference labels; noise, label 0, is fitted
but not scored; the largest score over all reference labels counts, 0 if it is negative.

Prints a table of mean scores by battery, or with --sets the scores of every set.
docs/results/published.md discusses them.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks.studies import sets
from cdsk import CDSK

INDICES = {"nmi": 0, "ar": 1}
SOURCE = "benchmarks_details.md"
BEST = "best of the others on each set"

# The columns of the table of all sets.
FEW = ("CDSK", "Genie_0.3", "Gaussian mixtures", BEST)


def read_published(path, index):
    """Return {set: {method: score}} of one index, the first table of its name."""
    lines = path.read_text().splitlines()
    title = f"Raw results for ``{index}``"
    start = next((i for i, line in enumerate(lines) if line.startswith(title)), None)
    if start is None:
        raise SystemExit(f"{path} contains no line {title!r}.")
    rows = []
    for line in lines[start + 1 :]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    (_, *methods), _, *rows = rows
    return {
        name: dict(zip(methods, map(float, values), strict=True))
        for name, *values in rows
    }


def best_score(X, references, index):
    """Return the score of CDSK that is compared with the published ones."""
    labels, found = {}, [0.0]
    for y in references:
        c = len(np.unique(y[y != 0]))
        if c not in labels:
            labels[c] = CDSK(c, random_state=0, n_threads=1).fit_predict(X)
        found.append(sets.scores(y, labels[c], y != 0)[INDICES[index]])
    return max(found)


def problems(folder, names):
    """Yield (name, X, reference labels) of the named sets that are in the folder."""
    for path in sorted(Path(folder, "clustering-data-v1").glob("*/*.data.gz")):
        stem = path.name.removesuffix(".data.gz")
        if (name := f"{path.parent.name}/{stem}") in names:
            files = sorted(path.parent.glob(f"{stem}.labels*.gz"))
            references = [np.loadtxt(file, dtype=int) for file in files]
            yield name, np.loadtxt(path, ndmin=2), references


def by_battery(found):
    """Yield the rows of a table: the mean score of every method, the best first."""
    batteries = {"all": list(found)}
    for name in found:
        batteries.setdefault(name.split("/")[0], []).append(name)
    yield ["", *(f"{battery} ({len(names)})" for battery, names in batteries.items())]
    means = {
        method: [
            np.mean([found[name][method] for name in names])
            for names in batteries.values()
        ]
        for method in next(iter(found.values()))
    }
    for method, row in sorted(means.items(), key=lambda item: -item[1][0]):
        yield [method, *(f"{value:.3f}" for value in row)]


def by_set(found):
    """Yield the rows of a table: the scores of a few methods on every set."""
    yield ["", *FEW]
    for name, scores in found.items():
        yield [name, *(f"{scores[method]:.2f}" for method in FEW)]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("published", type=Path)
    parser.add_argument("--index", choices=INDICES, default="ar")
    parser.add_argument("--sets", action="store_true", help="the scores of every set")
    options = parser.parse_args()
    published = read_published(options.published / SOURCE, options.index)
    found = {}
    for name, X, references in problems(options.data, published):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sets in several components
            ours = best_score(X, references, options.index)
        others = published[name]
        found[name] = {"CDSK": ours} | others | {BEST: max(others.values())}
    if not found:
        raise SystemExit(f"{options.data} contains no set of {SOURCE}.")
    head, *rows = (by_set if options.sets else by_battery)(found)
    for row in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(row) + " |")
    # published scores have two digits
    wins = sum(round(scores["CDSK"], 2) >= scores[BEST] for scores in found.values())
    print(f"\nCDSK is not below the best of the others on {wins} of {len(found)} sets.")


if __name__ == "__main__":
    main()
