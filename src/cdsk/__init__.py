# SPDX-License-Identifier: BSD-3-Clause
"""Kernel clustering that learns its own similarity.

Names are imported when first used: ``cdsk --help`` does not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from cdsk._version import __version__ as __version__

# Public name -> where it is: in this module, or this module itself.
_MODULES = {
    "BlockCDSK": "cdsk._blocks.estimator",
    "CDSK": "cdsk._estimator",
    "CountChoice": "cdsk._choices.n_clusters",
    "LambdaChoice": "cdsk._choices.lam",
    "QPResult": "cdsk._steps.qp",
    "Report": "cdsk._explain.report",
    "SparseStart": "cdsk._steps.start",
    "baselines": "cdsk.baselines",
    "gaussian_gram": "cdsk._kernels.gaussian",
    "gaussian_rows": "cdsk._kernels.gaussian",
    "get_include": "cdsk._runtime",
    "plot": "cdsk.plot",
    "select_lambda": "cdsk._select_lambda",
    "similarity_matrix": "cdsk._kernels.gaussian",
    "solve_qp": "cdsk._steps.qp",
    "sparse_start": "cdsk._steps.start",
    "suggest_n_clusters": "cdsk._choices.n_clusters",
    "theory": "cdsk.theory",
}

if TYPE_CHECKING:  # the same for type checkers; a test compares them
    from cdsk import baselines as baselines
    from cdsk import plot as plot
    from cdsk import theory as theory
    from cdsk._blocks.estimator import BlockCDSK as BlockCDSK
    from cdsk._choices.lam import LambdaChoice as LambdaChoice
    from cdsk._choices.n_clusters import CountChoice as CountChoice
    from cdsk._choices.n_clusters import suggest_n_clusters as suggest_n_clusters
    from cdsk._estimator import CDSK as CDSK
    from cdsk._explain.report import Report as Report
    from cdsk._kernels.gaussian import gaussian_gram as gaussian_gram
    from cdsk._kernels.gaussian import gaussian_rows as gaussian_rows
    from cdsk._kernels.gaussian import similarity_matrix as similarity_matrix
    from cdsk._runtime import get_include as get_include
    from cdsk._select_lambda import select_lambda as select_lambda
    from cdsk._steps.qp import QPResult as QPResult
    from cdsk._steps.qp import solve_qp as solve_qp
    from cdsk._steps.start import SparseStart as SparseStart
    from cdsk._steps.start import sparse_start as sparse_start
else:  # hidden from them: they cannot read __all__, and would take any name for ours
    __all__ = sorted({"__version__", *_MODULES})

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(_MODULES[name])
        itself = module.__name__ == f"{__name__}.{name}"
        value = globals()[name] = module if itself else getattr(module, name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
