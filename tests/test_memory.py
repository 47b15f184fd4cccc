"""Fits under a limit of memory end in a result or in an explained MemoryError.

Two libraries end the process themselves where they get no memory: libgomp if it cannot
start a thread, OpenBLAS if it gets no buffer at its first product. The first is why the
children have one thread; for the second ``allocate_blas_buffers`` checks the memory,
and most children make a first fit of a few points before the limit is set.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

resource = pytest.importorskip("resource")
if not os.path.exists("/proc/self/statm"):
    pytest.skip("the size of a process is read from /proc", allow_module_level=True)

CHILD = """
import resource, sys, warnings

import numpy as np
from scipy.spatial.distance import cdist

import cdsk
from cdsk import CDSK

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)


def indefinite(n):
    points = rng.normal(size=(n, 3))
    return 1.0 / (1.0 + np.abs(cdist(points, points) - 1.0))


def points(n, d):
    return rng.normal(size=(n, d))


def fit(X, **parameters):
    return CDSK(8, random_state=0, **parameters).fit(X)


cold = "cold" in sys.argv
calls = {
    "wide": (lambda n: points(n, 30), fit),
    "plane": (lambda n: points(n, 2), fit),
    "dense": (lambda n: points(n, 10), lambda X: fit(X, bandwidth="median")),
    "indefinite": (indefinite, lambda K: fit(K, kernel="precomputed")),
    "auto": (lambda n: points(n, 2), lambda X: fit(X, lam="auto", init="sparse")),
    "count": (lambda n: points(n, 6), cdsk.suggest_n_clusters),
    "lam": (lambda n: points(n, 6), lambda X: cdsk.select_lambda(X, 3, sample=1.0)),
    "start": (lambda n: points(n, 6), cdsk.sparse_start),
    "gram": (lambda n: points(n, 6), lambda X: cdsk.gaussian_gram(X, 1.0)),
    "predict": (lambda n: points(n, 3), None if cold else fit(points(300, 3)).predict),
}
name, n, room = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
make, call = calls[name]
if not cold:
    call(make(300) if name != "predict" else points(300, 3))
X = make(n)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + room, size + room))
try:
    call(X)
except MemoryError as error:
    print(error)
else:
    print("a result")
"""


def outcome(name, n, room, *options):
    """Return the line that a process prints which may grow by ``room`` bytes."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD, name, str(n), str(room), *options],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert child.returncode == 0, child.stderr
    (line,) = child.stdout.splitlines()
    assert line == "a result" or " needs " in line or "Out of memory while" in line, (
        line
    )
    return line


MIB = 2**20


@pytest.mark.parametrize(
    ("name", "n"),
    [
        pytest.param("wide", 1000, marks=pytest.mark.slow),
        pytest.param("dense", 1000, marks=pytest.mark.slow),
        pytest.param("indefinite", 600, marks=pytest.mark.slow),
    ],
)
def test_little_memory_and_enough(name, n):
    # with less the system cannot even grow the stack, and ends the process
    assert outcome(name, n, MIB) != "a result"
    assert outcome(name, n, 512 * MIB) == "a result"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n"), [("wide", 1000), ("indefinite", 800)])
def test_memory_for_blas_is_checked_before_its_first_product(name, n):
    assert outcome(name, n, 60 * MIB, "cold").startswith("BLAS, at its first product")
    assert outcome(name, n, 512 * MIB, "cold") == "a result"


FITS = [("wide", 3000), ("plane", 2000), ("dense", 2000), ("indefinite", 800)]
OTHERS = [
    *(("auto", 2000), ("count", 3000), ("lam", 2000)),
    *(("start", 100_000), ("gram", 2000), ("predict", 100_000)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "mebibytes"),
    [(*fit, m) for fit in FITS for m in (1, 2, 4, 7, 11, 16, 24, 40, 70, 150)]
    + [(*other, m) for other in OTHERS for m in (2, 16)],
)
def test_limits_of_memory(name, n, mebibytes):
    outcome(name, n, mebibytes * MIB)


PEAK = """
import sys, warnings

from sklearn.datasets import make_blobs

from benchmarks.peers.measure import peak_above_start
from cdsk import CDSK
from cdsk import _candidates as candidates

warnings.simplefilter("ignore")
n, d, c, k = map(int, sys.argv[1:])
X, _ = make_blobs(n, d, centers=c, random_state=0)
CDSK(3, random_state=0).fit(X[:300])
asked = []
candidates.check_memory = lambda n_bytes, *words: asked.append(n_bytes)
peak = peak_above_start(CDSK(c, n_neighbors=k, random_state=0).fit, X)
print(asked[0], peak)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("d", "c", "k"), [(10, 2, 20), (10, 30, 20), (10, 10, 40)])
def test_a_fit_takes_about_as_much_as_it_asks_for(d, c, k):
    child = subprocess.run(
        [sys.executable, "-c", PEAK, "30000", str(d), str(c), str(k)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=Path(__file__).parents[1],
    )
    asked, taken = map(int, child.stdout.split())
    assert 0.8 < taken / asked < 2.0
