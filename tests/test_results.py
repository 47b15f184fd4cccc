"""What the package promises on data that scikit-learn ships."""

import runpy
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
