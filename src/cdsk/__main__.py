# SPDX-License-Identifier: BSD-3-Clause
"""``python -m cdsk``: the command line."""

import sys

from cdsk.cli._main import main

if __name__ == "__main__":
    sys.exit(main())
