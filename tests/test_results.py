"""What the package promises on data that scikit-learn ships."""

import runpy
import subprocess
import sys
from pathlib import Path

QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart.py"


def test_learned_weights_show_their_worth_on_breast_cancer():
    results = runpy.run_path(str(QUICKSTART))["breast_cancer"]()
    assert results["accuracy, learned weights"] >= 0.92
    assert results["accuracy, uniform weights"] <= 0.70


def test_digits_with_default_settings():
    results = runpy.run_path(str(QUICKSTART))["digits"]()
    assert results["NMI, default settings"] >= 0.76
    assert results["predict(X) equals labels_"] >= 0.97


def test_import_pulls_in_no_plotting_or_command_line():
    # scikit-learn itself imports what it finds of some; ours is what comes on top
    code = """
import sys
import scipy.sparse.linalg, scipy.spatial, sklearn.cluster, sklearn.neighbors
before = set(sys.modules)
import cdsk
print(*(set(sys.modules) - before))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    added = set(done.stdout.split())
    assert "cdsk._estimator" in added
    unwanted = {"cdsk._cli", "cdsk._demo", "cdsk._tables", "cdsk.plot", "argparse"}
    assert not unwanted & added
    assert not {
        name for name in added if name.split(".")[0] in ("matplotlib", "pandas")
    }
