# SPDX-License-Identifier: BSD-3-Clause
"""Measurements in a subprocess, whose time and memory include nothing else."""

import json
import subprocess
import sys
from pathlib import Path


def run_module(module, arguments, timeout):
    """Run a module and return the JSON it prints, or why there is none."""
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
        lines = done.stderr.strip().splitlines() or ["no error message"]
        return {"failed": f"exit code {done.returncode}: {lines[-1]}"}
    return json.loads(done.stdout.splitlines()[-1])
