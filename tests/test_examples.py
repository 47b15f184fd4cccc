"""Every example runs, alone and within the time a reader will wait."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted([*FOLDER.glob("*.py"), *FOLDER.glob("gallery/*.py")])

# Seconds on one core. Processor time, which a busy machine does not lengthen; the
# time-out is for an example that waits.
LONGEST, TIMEOUT = 20, 200


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_ends_in_time(example, tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        env={
            **os.environ,
            # BLAS and OpenMP would spread over the cores what the limit counts together
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "CDSK_SMALL": "1",
            "MPLBACKEND": "agg",
        },
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST)),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout
