"""Ctrl-C ends long calls at any moment and leaves the estimator as it was."""

import pytest

import cdsk
from cdsk import CDSK

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(
    ("n", "d", "seconds"),
    [
        *((8000, 10, seconds) for seconds in (0.3, 1, 3)),
        *((20_000, 30, seconds) for seconds in (1, 3, 8, 20)),
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
        *((20_000, 30, seconds) for seconds in (1, 3, 8)),
    ],
)
def test_suggest_n_clusters(rng, interrupt_after, n, d, seconds):
    X = rng.normal(size=(n, d))
    with pytest.raises(KeyboardInterrupt), interrupt_after(seconds):
        while True:
            cdsk.suggest_n_clusters(X, random_state=0)
