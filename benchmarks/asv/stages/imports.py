# SPDX-License-Identifier: BSD-3-Clause
"""Import in a fresh interpreter; ``cdsk._cdsk`` is what CDSK needs."""

import subprocess
import sys


class Import:
    params = (["cdsk", "cdsk._cdsk", "sklearn.cluster"],)
    param_names = ("module",)

    def timeraw_import(self, module):
        return f"import {module}"

    def track_modules(self, module):
        """Number of modules that come along."""
        code = f"import sys, {module}; print(len(sys.modules))"
        return int(subprocess.check_output([sys.executable, "-c", code]))
