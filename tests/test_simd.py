"""Each compiled instruction set gives the same result up to rounding."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cdsk import _kernel

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
found = {"level": _kernel.simd_level(), "K": K, "x": qp.x, "gap": qp.gap}
for name, points, bandwidth in ("full", X, 2.0), ("default", X[:150], "auto"):
    model = CDSK(3, bandwidth=bandwidth, qp_tol=1e-8, random_state=0).fit(points)
    found[name + " labels"] = model.labels_
    found[name + " weights"] = model.weights_
    found[name + " votes"] = model.decision_function(points)
np.savez(sys.argv[1], **found)
"""


def run(level, folder):
    path = folder / f"{level}.npz"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        env=os.environ | {"CDSK_SIMD": level},
        check=True,
    )
    return np.load(path)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the script found under each limit; an unknown name limits nothing."""
    folder = tmp_path_factory.mktemp("simd")
    levels = ("base", "v3", "v4", "unknown")
    with ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda level: run(level, folder), levels)
        return dict(zip(levels, runs, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["base", "v3"])
def test_levels_agree(found, level):
    widest, other = found["v4"], found[level]
    assert other["level"] in ("base", level)
    np.testing.assert_allclose(other["K"], widest["K"], rtol=1e-12)
    assert other["gap"] <= 1e-9
    np.testing.assert_allclose(other["x"], widest["x"], atol=1e-6)
    for kernel in ("full", "default"):
        for name, atol in (("labels", 0), ("weights", 1e-6), ("votes", 0.05)):
            name = f"{kernel} {name}"
            np.testing.assert_allclose(other[name], widest[name], rtol=0, atol=atol)


def test_base_is_always_there(found):
    assert found["base"]["level"] == "base"


@pytest.mark.skipif(bool(os.environ.get("CDSK_SIMD")), reason="limited from outside")
def test_no_limit_by_default(found):
    assert found["unknown"]["level"] == _kernel.simd_level()
