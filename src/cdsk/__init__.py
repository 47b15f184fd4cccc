# SPDX-License-Identifier: BSD-3-Clause
"""Kernel clustering that learns its own similarity."""

from cdsk._count import CountChoice, suggest_n_clusters
from cdsk._estimator import CDSK
from cdsk._gaussian import gaussian_gram, gaussian_rows, similarity_matrix
from cdsk._include import get_include
from cdsk._init import SparseStart, sparse_start
from cdsk._lambda import LambdaChoice
from cdsk._qp import QPResult, solve_qp
from cdsk._select import select_lambda
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
