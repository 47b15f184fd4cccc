# SPDX-License-Identifier: BSD-3-Clause
"""Import in a new interpreter; ``cdsk._cdsk`` contains CDSK."""

import subprocess
import sys


class Import:
    params = (["cdsk", "cdsk._cdsk", "sklearn.cluster"],)
    param_names = ("module",)

    def timeraw_import(self, module):
        return f"import {module}"

    def track_modules(self, module):
        """Return the number of modules that are imported with it."""
        code = f"import sys, {module}; print(len(sys.modules))"
        return int(subprocess.check_output([sys.executable, "-c", code]))
