# SPDX-License-Identifier: BSD-3-Clause
"""A fitted model in numbers and words."""
