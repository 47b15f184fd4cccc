# SPDX-License-Identifier: BSD-3-Clause
"""Clustering of dask collections, by the passes of ``BlockCDSK``.

Blocks of rows are worked on where they are: ``_local.py`` asks the schedulers of dask
in this process to, ``_cluster.py`` the workers of a ``distributed.Client``.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "cdsk.dask needs dask and distributed: pip install cdsk[dask]"
    ) from error

from cdsk.dask._estimator import CDSK

__all__ = ["CDSK"]
