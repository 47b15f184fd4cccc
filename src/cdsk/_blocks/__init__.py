# SPDX-License-Identifier: BSD-3-Clause
"""Clustering of data that are gone through in blocks of rows, by landmarks.

Every pass is a function of a block, its first row number and a small state; what the
passes of two blocks gave is merged without rounding, so that neither the cut into
blocks nor the order of merging changes a bit.
"""
