# SPDX-License-Identifier: BSD-3-Clause
"""Report of a fitted model: text, plain data and an HTML page."""
