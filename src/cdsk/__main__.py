# SPDX-License-Identifier: BSD-3-Clause
"""``python -m cdsk``: the command line."""

import sys

from cdsk._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
