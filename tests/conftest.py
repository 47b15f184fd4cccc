import os

import numpy as np
import pytest


@pytest.fixture
def rng():
    """Random numbers; CDSK_TEST_SEED tries others than 0."""
    return np.random.default_rng(int(os.environ.get("CDSK_TEST_SEED", "0")))


@pytest.fixture(params=[np.float64, np.float32], ids=["f64", "f32"])
def dtype(request):
    return request.param
