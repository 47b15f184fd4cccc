# SPDX-License-Identifier: BSD-3-Clause
"""A measurement in a process of its own, so that its time and memory are its own."""

import json
import subprocess
import sys
from pathlib import Path


def figures_of(module, arguments, timeout):
    """What a module prints as JSON for these arguments, or why there is nothing."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, json.dumps(arguments)],
            cwd=Path(__file__).parents[1],
            timeout=timeout,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return {"timeout": timeout}
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no word"]
        return {"failed": f"exit code {done.returncode}: {said[-1]}"}
    return json.loads(done.stdout.splitlines()[-1])
