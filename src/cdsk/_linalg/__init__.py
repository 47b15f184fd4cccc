# SPDX-License-Identifier: BSD-3-Clause
"""Linear algebra that knows nothing of clustering, around LAPACK and ARPACK."""
