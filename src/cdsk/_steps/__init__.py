# SPDX-License-Identifier: BSD-3-Clause
"""The steps of the paper: embedding, weights, labels, and their alternation."""
