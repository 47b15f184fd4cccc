# SPDX-License-Identifier: BSD-3-Clause
"""Kernel clustering that learns its own similarity."""

from cdsk._choices.lam import LambdaChoice
from cdsk._choices.n_clusters import CountChoice, suggest_n_clusters
from cdsk._estimator import CDSK, select_lambda
from cdsk._kernels.gaussian import gaussian_gram, gaussian_rows, similarity_matrix
from cdsk._runtime import get_include
from cdsk._steps.qp import QPResult, solve_qp
from cdsk._steps.start import SparseStart, sparse_start
from cdsk._version import __version__

__all__ = [
    "CDSK",
    "CountChoice",
    "LambdaChoice",
    "QPResult",
    "SparseStart",
    "__version__",
    "gaussian_gram",
    "gaussian_rows",
    "get_include",
    "select_lambda",
    "similarity_matrix",
    "solve_qp",
    "sparse_start",
    "suggest_n_clusters",
]
