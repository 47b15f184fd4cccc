# SPDX-License-Identifier: BSD-3-Clause
"""Where the C header lies."""

from pathlib import Path


def get_include() -> str:
    """Folder of ``cdsk.h``, for the include path of C and C++ code.

    Cython code needs no header: ``from cdsk cimport ...`` finds the installed
    declarations.

    Returns
    -------
    path : str

    Examples
    --------
    >>> import os
    >>> from cdsk import get_include
    >>> os.listdir(get_include())
    ['cdsk.h']
    """
    return str(Path(__file__).parent / "include")
