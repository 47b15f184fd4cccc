import numpy as np
import pytest

import cdsk
from cdsk import CDSK
from cdsk import _runtime as _memory


def test_too_large_a_matrix_is_refused_before_it_is_made(monkeypatch, rng):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 79_999)
    X = rng.normal(size=(100, 2))
    fit = CDSK(2, bandwidth=1.0).fit
    for call in (lambda: fit(X), lambda: cdsk.gaussian_gram(X, 1.0)):
        with pytest.raises(MemoryError, match=r"80,000 bytes .* only 79,999 .*float32"):
            call()
    cdsk.gaussian_gram(X.astype(np.float32), 1.0)


def test_the_dense_spectral_step_asks_for_its_memory(monkeypatch, rng):
    K = cdsk.gaussian_gram(rng.normal(size=(100, 2)), 1.0)
    monkeypatch.setattr(_memory, "available_bytes", lambda: 100_000)
    with pytest.raises(
        MemoryError, match=r"320,000 bytes .*at most n_samples / 12 = 8"
    ):
        CDSK(50, kernel="precomputed").fit(K)


def test_a_million_points_are_refused_at_once():
    X = np.zeros((1_000_000, 1), dtype=np.float32)
    with pytest.raises(MemoryError, match="4,000,000,000,000 bytes"):
        cdsk.gaussian_gram(X, 1.0)


def test_unknown_memory_refuses_nothing(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: None)
    _memory.check_memory(10**30, "That", "Do less.")
    assert _memory.available_bytes() is None


def test_files_of_the_system_are_read(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  7 kB\n")
    assert _memory._system(tmp_path / "meminfo") == 7 * 1024
    assert _memory._system(tmp_path / "absent") is None
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("600\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 100\n")
    assert _memory._control_group(tmp_path) == 500
    (tmp_path / "memory.max").write_text("max\n")
    assert _memory._control_group(tmp_path) is None
    assert _memory._control_group(tmp_path / "absent") is None
