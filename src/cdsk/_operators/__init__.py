# SPDX-License-Identifier: BSD-3-Clause
"""Kernels and their similarities as operators; base.py defines the interfaces."""
