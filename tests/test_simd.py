"""Each compiled instruction set gives the same result up to rounding."""

import os
import subprocess
import sys

import numpy as np
import pytest

SCRIPT = """
import sys
import numpy as np
import cdsk
from cdsk import CDSK, _kernel
from sklearn.datasets import make_blobs
X = make_blobs(300, 5, centers=3, cluster_std=3.0, random_state=0)[0]
K = cdsk.gaussian_gram(X, 2.0)
p = np.random.default_rng(0).normal(size=300)
qp = cdsk.solve_qp(K, p, 0.02, tol=1e-9)
model = CDSK(3, qp_tol=1e-8, random_state=0).fit(X)
np.savez(sys.argv[1], level=_kernel.simd_level(), K=K, x=qp.x, gap=qp.gap,
         labels=model.labels_, weights=model.weights_, votes=model.decision_function(X))
"""


def run(level, folder):
    path = folder / f"{level}.npz"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        env=os.environ | {"CDSK_SIMD": level},
        check=True,
    )
    return np.load(path)


def test_levels_agree(tmp_path):
    widest = run("v4", tmp_path)
    for level in ("base", "v3"):
        other = run(level, tmp_path)
        assert other["level"] in ("base", level)
        np.testing.assert_allclose(other["K"], widest["K"], rtol=1e-12)
        assert other["gap"] <= 1e-9
        np.testing.assert_allclose(other["x"], widest["x"], atol=1e-6)
        assert (other["labels"] == widest["labels"]).all()
        np.testing.assert_allclose(other["weights"], widest["weights"], atol=1e-6)
        np.testing.assert_allclose(other["votes"], widest["votes"], atol=0.05)


def test_base_is_always_there(tmp_path):
    assert run("base", tmp_path)["level"] == "base"


@pytest.mark.parametrize("level", ["", "unknown"])
def test_no_limit_by_default(level, tmp_path):
    from cdsk import _kernel

    if "CDSK_SIMD" not in os.environ:
        assert run(level or "none", tmp_path)["level"] == _kernel.simd_level()
