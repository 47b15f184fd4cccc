# SPDX-License-Identifier: BSD-3-Clause
"""What the data decide: representation, kernels, partition, lam, n_clusters."""
