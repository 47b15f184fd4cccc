# SPDX-License-Identifier: BSD-3-Clause
"""Landmark clustering of data that are read in blocks of rows.

Every pass is a function of some rows, the index of the first of them and a small state.
The results of two parts of X are merged without rounding: neither the partition of X
into blocks nor the order of merging changes a bit.
"""
