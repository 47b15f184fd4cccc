# SPDX-License-Identifier: BSD-3-Clause
"""Kernels and what they are made of; interface.py lists what a stage may ask."""
