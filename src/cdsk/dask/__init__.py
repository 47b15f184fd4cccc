# SPDX-License-Identifier: BSD-3-Clause
"""Clustering of dask collections, by the passes of ``BlockCDSK``.

Chunks of rows are processed where they are: by the schedulers of dask in this process
(``_local.py``), or by the workers of a ``distributed.Client`` (``_cluster.py``).
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "cdsk.dask requires dask and distributed: pip install cdsk[dask]"
    ) from error

from cdsk.dask._estimator import CDSK

__all__ = ["CDSK"]
