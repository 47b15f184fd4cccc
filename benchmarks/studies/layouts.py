# SPDX-License-Identifier: BSD-3-Clause
"""When should a layout replace the view: scores of both, and their supports.

usage: python -m benchmarks.studies.layouts [DATA] [--cap 5000] [--seeds 24]

DATA is a folder as in sets.py; sets with enough points for a layout are used. Without
it, there are mixtures of Gaussian or heavy-tailed clusters of random number, dimension,
size and width only. Prints NMI/ARI of the view, of the best partition of two layouts
and of the default fit, and the ratio of the supports, which must be 1.5 for a layout.
docs/notes/2026-11-18-layout-view.md discusses them.
"""

import argparse
import warnings
from unittest import mock

import numpy as np

from benchmarks.studies import sets
from cdsk import CDSK, _view_fits


def mixture(seed):
    """Return a mixture of 3 to 24 clusters, of a hundred points or more on average."""
    rng = np.random.RandomState(1000 + seed)
    c, d = rng.randint(3, 25), int(np.exp(rng.uniform(np.log(4), np.log(80))))
    n = max(2000, 100 * c) + rng.randint(2500)
    separation = rng.uniform(0.9, 1.8) * (10 / d) ** 0.35
    shares = np.exp(rng.uniform(0, 1) * rng.standard_normal(c))
    y = rng.choice(c, n, p=shares / shares.sum())
    widths = np.exp(rng.uniform(0, 0.5) * rng.standard_normal(c))
    noise = rng.standard_normal((n, d)) if seed % 3 else rng.standard_t(4, (n, d))
    return separation * rng.standard_normal((c, d))[y] + widths[
        y, np.newaxis
    ] * noise, y


def problems(options):
    """Yield (name, X, y, scored points)."""
    for seed in range(options.seeds):
        X, y = mixture(seed)
        yield f"mixture {seed}", X, y, np.ones(len(y), dtype=bool)
    if options.data is not None:
        yield from sets.load(options.data, options.cap)


def fit(X, n_clusters, gain):
    """Fit X, where a layout replaces the view from a ratio of supports on."""
    with mock.patch.object(_view_fits, "MIN_LAYOUT_GAIN", gain):
        return CDSK(n_clusters, random_state=0, n_threads=1).fit(X)


def main(arguments=None):
    """Print a line for every set, and the mean gain of the default fit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="?")
    parser.add_argument("--cap", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=24)
    warnings.simplefilter("ignore")
    gains = []
    for name, X, y, counted in problems(parser.parse_args(arguments)):
        n_clusters = len(np.unique(y[counted]))
        # a gain of 0 makes and takes layouts wherever they are considered
        models = [
            fit(X, n_clusters, gain) for gain in (0.0, _view_fits.MIN_LAYOUT_GAIN)
        ]
        support = list(models[0].representation_.support.values())
        if len(support) < 2:
            continue
        with mock.patch.object(_view_fits, "_may_have_layout", return_value=False):
            models.insert(0, fit(X, n_clusters, 0.0))
        found = [sets.scores(y, model.labels_, counted) for model in models]
        gains.append(np.subtract(found[2], found[0]))
        texts = "  ".join(f"{nmi:.3f}/{ari:.3f}" for nmi, ari in found)
        print(f"{name:28s} {texts}  {support[1] / support[0]:.2f}", flush=True)
    nmi, ari = np.mean(gains, axis=0) if gains else (np.nan, np.nan)
    print(f"mean gain of {len(gains)} sets: {nmi:+.3f}/{ari:+.3f}")


if __name__ == "__main__":
    main()
