# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of the estimator at the door (tests/test_estimator.py)."""

import numbers

import numpy as np

from cdsk._choices.representation import check_representation
from cdsk._kernels.bandwidth import RULES
from cdsk._kernels.pairwise import NAMES, check_kernel_params
from cdsk._steps.eigen import SOLVERS
from cdsk._steps.labels import METHODS
from cdsk._validation import (
    METRICS,
    check_choice,
    check_integer,
    check_number,
    needs_dense,
)

# Kernels whose points are not known.
GIVEN = ("precomputed", "precomputed_neighbors")


def check_parameters(model):
    """Refuse what cannot be; what depends on the data is seen later."""
    _check_n_clusters(model)
    if not callable(model.kernel):
        check_choice(model.kernel, "kernel", ("rbf", *GIVEN, *NAMES))
    check_kernel_params(model.kernel, model.kernel_params)
    check_choice(model.metric, "metric", METRICS)
    if model.metric != "euclidean" and model.kernel in GIVEN:
        raise ValueError(
            f"metric={model.metric!r} needs points; expected 'euclidean' for "
            f"kernel={model.kernel!r}."
        )
    if model.psd is not None and not isinstance(model.psd, bool | np.bool_):
        raise ValueError(f"psd must be True, False or None; got {model.psd!r}.")
    if isinstance(model.bandwidth, numbers.Real):
        check_number(model.bandwidth, "bandwidth", above=0)
    else:
        rules = ("auto", *RULES)
        check_choice(model.bandwidth, "bandwidth", rules, or_else="a number > 0 or ")
    if model.n_neighbors is not None:
        check_integer(model.n_neighbors, "n_neighbors", 1)
        if model.kernel not in ("rbf", "precomputed_neighbors"):
            raise ValueError(
                'n_neighbors truncates kernel="rbf" only; expected None for '
                f"kernel={model.kernel!r}, got {model.n_neighbors!r}."
            )
    _check_neighbors(model)
    _check_approximation(model)
    lowrank = model.approximation is not None
    check_representation(model.representation, model.n_components, lowrank)
    if model.kernel in GIVEN and model.representation not in ("auto", "raw"):
        raise ValueError(
            f"representation={model.representation!r} needs points; expected 'auto' or "
            f"'raw' for kernel={model.kernel!r}."
        )
    if isinstance(model.lam, str):
        check_choice(model.lam, "lam", ("auto",), or_else="a number in (0, 1] or ")
    else:
        check_number(model.lam, "lam", above=0, at_most=1)
    if isinstance(model.init, str):
        check_choice(model.init, "init", ("uniform", "sparse"))
    check_integer(model.max_iter, "max_iter", 0)
    check_number(model.tol, "tol", at_least=0)
    check_number(model.qp_tol, "qp_tol", above=0)
    check_choice(model.eigen_solver, "eigen_solver", SOLVERS)
    check_choice(model.assign_labels, "assign_labels", METHODS)
    # k-means draws a seed for each of them at once
    check_integer(model.n_init, "n_init", 1, 10**6)
    if model.noise is not None:
        check_number(model.noise, "noise", at_least=0, at_most=0.5)
        if model.noise and model.kernel in GIVEN:
            raise ValueError(
                f"noise needs points; expected None for kernel={model.kernel!r}, got "
                f"{model.noise!r}."
            )
    if not isinstance(model.verbose, bool | np.bool_):
        check_integer(model.verbose, "verbose", 0)


def refused_for_sparse(model):
    """Name of a parameter that needs dense points, and what sparse ones have; or None.

    It would need a number for every row and column, or for every pair of points.
    Parameters need not have been checked: tags of scikit-learn are asked for before.
    """

    def is_one_of(name, *choices):
        value = getattr(model, name)
        return isinstance(value, str) and value in choices

    alone = model.n_neighbors is None and model.neighbors is None
    rules = "variance", "std", "median"
    for name, refused, expected in (
        ("kernel", not is_one_of("kernel", "rbf"), "'rbf', or a kernel matrix"),
        ("representation", not is_one_of("representation", "auto", "raw"), "'raw'"),
        ("approximation", model.approximation is not None, "None"),
        ("init", is_one_of("init", "sparse"), "'uniform'"),
        (
            "bandwidth",
            is_one_of("bandwidth", *rules),
            "'auto', 'neighbour' or a number",
        ),
        (
            "n_neighbors",
            alone and not is_one_of("bandwidth", "auto"),
            f"a number for bandwidth={model.bandwidth!r}",
        ),
    ):
        if refused:
            return name, expected
    return None


def check_for_sparse(model):
    """Refuse what sparse points cannot have."""
    refused = refused_for_sparse(model)
    if refused is not None:
        name, expected = refused
        raise needs_dense(name, getattr(model, name), expected)


def _check_n_clusters(model):
    """A number, or "auto" where there are points to count clusters of."""
    if not isinstance(model.n_clusters, str):
        check_integer(model.n_clusters, "n_clusters", 1)
        return
    check_choice(model.n_clusters, "n_clusters", ("auto",), or_else="an integer or ")
    if model.kernel in GIVEN:
        raise ValueError(
            'n_clusters="auto" needs points; expected an integer for '
            f"kernel={model.kernel!r}."
        )
    if model.neighbors is not None:
        raise ValueError(
            'n_clusters="auto" searches for neighbours by itself; expected an integer '
            f"for neighbors={model.neighbors!r}."
        )


def _check_neighbors(model):
    """A transformer of points to a graph, and what a graph without points cannot do."""
    transformer = model.neighbors
    if transformer is not None:
        methods = "fit_transform", "transform", "get_params"
        missing = [name for name in methods if not hasattr(transformer, name)]
        if missing or isinstance(transformer, type):
            raise ValueError(
                "neighbors must be None or a transformer of points to a sparse graph "
                "of distances, such as KNeighborsTransformer(mode='distance'); got "
                f"{transformer!r}."
            )
        if model.kernel != "rbf":
            raise ValueError(
                'neighbors truncates kernel="rbf" only; expected None for '
                f"kernel={model.kernel!r}, got {transformer!r}."
            )
        if getattr(transformer, "mode", "distance") != "distance":
            raise ValueError(
                "neighbors must give distances; expected a transformer with "
                f"mode='distance', got mode={transformer.mode!r}."
            )
    if model.kernel == "precomputed_neighbors":
        bandwidth, lam = model.bandwidth, model.lam
        if isinstance(bandwidth, str) and bandwidth not in ("auto", "local"):
            raise ValueError(
                f"bandwidth={bandwidth!r} needs points; expected a number, 'auto' or "
                "'local' for kernel='precomputed_neighbors'."
            )
        if isinstance(lam, str):
            raise ValueError(
                f"lam={lam!r} needs points, as samples have other neighbours; expected "
                "a number for kernel='precomputed_neighbors'."
            )


def _check_approximation(model):
    """A matrix of low rank stands for a Gaussian kernel of one bandwidth only."""
    if model.approximation is None:
        return
    check_choice(model.approximation, "approximation", ("lowrank",), or_else="None or ")
    several = model.bandwidth in ("auto", "local")
    for name, value, refused, expected in (
        ("kernel", model.kernel, model.kernel != "rbf", '"rbf"'),
        (
            "bandwidth",
            model.bandwidth,
            several,
            "a number, or a rule for one bandwidth",
        ),
        ("n_neighbors", model.n_neighbors, model.n_neighbors is not None, "None"),
        ("neighbors", model.neighbors, model.neighbors is not None, "None"),
        ("psd", model.psd, model.psd is not None and not model.psd, "None or True"),
    ):
        if refused:
            raise ValueError(
                'approximation="lowrank" is for a Gaussian kernel of one bandwidth on '
                f"all pairs of points; expected {name} to be {expected}, got {value!r}."
            )
