# SPDX-License-Identifier: BSD-3-Clause
"""The methods of the tables: the paper's row, the estimator, and the largest size.

Estimators have their default parameters, except for those that depend on the mode.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sklearn.base import clone
from sklearn.cluster import KMeans, SpectralClustering

from cdsk import CDSK, baselines
from cdsk.baselines._base import AffinityBaseline, spectral_labels

# Largest number of points on which a method that does not scale is run.
FEW = 3000
# Number of points above which the kernel of the paper's CDSK is approximated.
DENSE = 12_000
# Rule for one bandwidth. The variance of the distances, as printed, has the unit of the
# data squared: it is nearly 0 for unit rows. Its square root is scale-free.
BANDWIDTH = {"paper": "variance", "default": "std"}


class Unavailable(Exception):
    """A method cannot be run here; the message says why."""


@dataclass(frozen=True)
class Method:
    """A row of our tables.

    ``make(n_clusters, n, mode, seed)`` returns the estimator for n points. ``limit`` is
    the largest number of points it is run on, None if it scales. ``row`` is the paper's
    row, "" if there is none. If ``only_sampled``, it is run only on the samples, for
    comparison with methods that do not scale.
    """

    name: str
    row: str
    make: Callable
    limit: int | None = FEW
    only_sampled: bool = False

    @property
    def ours(self):
        return self.row == "CDSK"


def _kmeans(n_clusters, n, mode, seed):
    # the paper's rows are means of single initializations
    n_init = 1 if mode == "paper" else 10
    return KMeans(n_clusters, n_init=n_init, random_state=seed)


def _baseline(name, n_clusters, n, mode, seed, **settings):
    if not hasattr(baselines, name):
        raise Unavailable(f"cdsk.baselines has no {name}")
    return getattr(baselines, name)(n_clusters, random_state=seed, **settings)


def _one_bandwidth(name, n_clusters, n, mode, seed):
    return _baseline(name, n_clusters, n, mode, seed, bandwidth=BANDWIDTH[mode])


def _neighbors(n_clusters, n, mode, seed):
    return SpectralClustering(
        n_clusters, affinity="nearest_neighbors", random_state=seed
    )


def _printed(n_clusters, n, mode, seed, **settings):
    """Return CDSK as in the paper: one Gaussian, lam by entropy, a sparse start."""
    settings = {"lam": "auto", "init": "sparse"} | settings
    approximation = "lowrank" if n > DENSE else None
    return CDSK(
        n_clusters,
        bandwidth=BANDWIDTH[mode],
        representation="raw",
        approximation=approximation,
        random_state=seed,
        **settings,
    )


def _default(n_clusters, n, mode, seed, **settings):
    return CDSK(n_clusters, random_state=seed, **settings)


# uniform weights: plain spectral clustering, which does not depend on lam
_UNIFORM = {"lam": 0.2, "init": "uniform", "max_iter": 0}

METHODS = {
    "kmeans": Method("K-Means", "K-Means", _kmeans, None),
    "sc": Method("SC, self-tuning", "SC", partial(_baseline, "SelfTuningSpectral")),
    "sck": Method("SCK", "SC", partial(_one_bandwidth, "GaussianSpectral")),
    "sc-ms": Method("SC-MS", "SC", partial(_baseline, "ManifoldSpectral"), None),
    "sc-ns": Method("SC-NS", "SC", partial(_one_bandwidth, "KernelKMeans")),
    "l1-graph": Method("l1-Graph", "l1-Graph", partial(_baseline, "L1Graph")),
    "smce": Method("SMCE", "SMCE", partial(_baseline, "SMCE"), None),
    "lap-l1-graph": Method(
        "Lap-l1-Graph", "Lap-l1-Graph", partial(_baseline, "LaplacianL1Graph")
    ),
    "rag": Method("RAG", "RAG", partial(_baseline, "RobustAffinityGraph")),
    "mmc": Method("MMC", "MMC", partial(_baseline, "MaxMarginClustering")),
    "bmmc": Method("BMMC", "BMMC", partial(_baseline, "BayesianMaxMargin")),
    "rim": Method("RIM", "RIM", partial(_baseline, "RIM", kernel="linear"), None),
    "rim-kernel": Method("RIM, kernel", "RIM", partial(_baseline, "RIM", kernel="rbf")),
    "ratio-rf": Method("RatioRF", "RatioRF", partial(_baseline, "RatioRF")),
    "elm": Method(
        "Discriminative ELM", "", partial(_baseline, "DiscriminativeELM"), None
    ),
    "knn": Method("k-NN spectral", "", _neighbors, None),
    "cdsk-paper": Method("CDSK printed", "CDSK", _printed, None),
    "cdsk-paper-uniform": Method(
        "CDSK printed, uniform", "CDSK", partial(_printed, **_UNIFORM), None
    ),
    "cdsk": Method("CDSK", "CDSK", _default, None),
    "cdsk-uniform": Method(
        "CDSK, uniform", "CDSK", partial(_default, max_iter=0), None
    ),
    "cdsk-sample": Method("CDSK, sample", "CDSK", _default, only_sampled=True),
}


def fits(make, X, seeds):
    """Yield a function for every seed that returns (labels, is it a whole fit).

    ``make(seed)`` returns the estimator. An affinity that does not depend on the seed
    is computed by the first function that succeeds; the others only cluster it again.
    """
    made = []

    def labels_of(seed):
        if made:
            return _again(made[0], seed), False
        model = make(seed)
        labels = model.fit(X).labels_
        if _keeps_affinity(model):
            made.append(model)
        return labels, True

    for seed in seeds:
        yield partial(labels_of, seed)


def _keeps_affinity(model):
    if isinstance(model, AffinityBaseline):
        return not model.random_affinity
    return isinstance(model, SpectralClustering)


def _again(model, seed):
    """Return labels from the affinity of a fitted model, with another seed."""
    if isinstance(model, SpectralClustering):
        other = clone(model).set_params(affinity="precomputed", random_state=seed)
        return other.fit_predict(model.affinity_matrix_)
    return spectral_labels(
        model.affinity_matrix_,
        model.n_clusters,
        assign_labels=model.assign_labels,
        n_init=model.n_init,
        random_state=seed,
    )
