"""Ctrl-C ends long calls at any moment and leaves the estimator as it was."""

import numpy as np
import pytest
from scipy import sparse

import cdsk
from cdsk import CDSK
from cdsk._graph import aggregate, components
from cdsk._linalg.multilevel import Multilevel
from cdsk._steps.labels import assign_labels

pytestmark = [
    pytest.mark.slow,
    # normal points have no clusters to converge to
    pytest.mark.filterwarnings("ignore:The alternation did not converge"),
]


@pytest.mark.parametrize(
    ("n", "d", "seconds"),
    [
        *((8000, 10, seconds) for seconds in (0.3, 1, 3)),
        *((20_000, 30, seconds) for seconds in (1, 3, 8, 20)),
        *((300_000, 2, seconds) for seconds in (1, 3, 8, 20)),
    ],
)
def test_fit(rng, interrupt_after, n, d, seconds):
    model = CDSK(8, random_state=0).fit(rng.normal(size=(100, d)))
    X, before = rng.normal(size=(n, d)), model.__dict__.copy()
    with pytest.raises(KeyboardInterrupt), interrupt_after(seconds):
        while True:  # also where a fit takes less
            model.fit(X)
            before = model.__dict__.copy()
    assert model.__dict__.keys() == before.keys()
    assert all(model.__dict__[name] is before[name] for name in before)


@pytest.mark.parametrize(
    ("n", "d", "seconds"),
    [
        *((8000, 10, seconds) for seconds in (0.3, 1, 3)),
        *((20_000, 30, seconds) for seconds in (1, 3, 8, 20)),
    ],
)
def test_suggest_n_clusters(rng, interrupt_after, n, d, seconds):
    X = rng.normal(size=(n, d))
    with pytest.raises(KeyboardInterrupt), interrupt_after(seconds):
        while True:
            cdsk.suggest_n_clusters(X, random_state=0)


@pytest.mark.parametrize("seconds", [0.3, 1, 2])
@pytest.mark.parametrize("stage", ["components", "aggregate", "hierarchy", "labels"])
def test_stages_of_many_points(rng, interrupt_after, stage, seconds):
    n, k = 10**6, 10
    steps = np.concatenate([np.arange(-k, 0), np.arange(1, k + 1)])
    columns = (np.arange(n, dtype=np.int32)[:, np.newaxis] + steps) % n
    ring = sparse.csr_array(
        (np.full(2 * k * n, 0.05), columns.ravel(), np.arange(0, 2 * k * n + 1, 2 * k)),
        shape=(n, n),
    )
    ring.sort_indices()
    parts = ring.indptr, ring.indices, ring.data
    points = rng.normal(size=(10, n))
    call = {
        "components": lambda: components(*parts, np.zeros(n)),
        "aggregate": lambda: aggregate(*parts, 0.5),
        "hierarchy": lambda: Multilevel(ring, np.ones(n), 1e-8, 2),
        "labels": lambda: assign_labels(points, "kmeans", n_init=3, random_state=0),
    }[stage]
    with pytest.raises(KeyboardInterrupt), interrupt_after(seconds):
        while True:
            call()
