# SPDX-License-Identifier: BSD-3-Clause
"""Warnings that name the user's line, however deep they arise (tests/test_warn.py)."""

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning

# Frames of these are not the user's: fit_predict and set_output are scikit-learn's.
_INSIDE = ("cdsk", "sklearn")


def warn(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the innermost line that is in neither package."""
    # what ``skip_file_prefixes`` does, from Python 3.12 on
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_inside(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE
