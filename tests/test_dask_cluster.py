"""cdsk.dask.CDSK on workers: the same bits on any, whatever happens to them."""

import asyncio
import importlib
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from cdsk import BlockCDSK

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
dask_rows = importlib.import_module("dask_rows")
CDSK = importlib.import_module("cdsk.dask").CDSK

# distributed says so of sockets and loops that close while they are waited for
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


@pytest.fixture(scope="module")
def X():
    return make_blobs(300, 4, centers=3, cluster_std=1.5, random_state=0)[0]


@pytest.fixture(scope="module")
def expected(X):
    return BlockCDSK(3, random_state=0, n_threads=1).fit(X)


def model(**parameters):
    return CDSK(3, random_state=0, n_threads=1, **parameters)


def cluster(n_workers, processes, **options):
    return distributed.LocalCluster(
        n_workers=n_workers,
        processes=processes,
        threads_per_worker=1,
        dashboard_address=":0",
        silence_logs=60,
        **options,
    )


@pytest.fixture(scope="module")
def workers():
    """Two processes; a client of them is made for every test."""
    with cluster(2, True) as workers:
        yield workers


@pytest.fixture
def client(workers):
    with distributed.Client(workers) as client:
        client.wait_for_workers(2)
        yield client


def left_behind(client):
    """What the client and the scheduler hold when all running tasks have ended."""
    for _ in range(100):
        left = {*client.futures, *client.cluster.scheduler.tasks}
        if not any("cdsk" in str(key) for key in left):
            break
        time.sleep(0.05)
    return sorted(left)


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_same_bits_for_any_workers(X, expected, n_workers):
    with cluster(n_workers, False) as workers, distributed.Client(workers) as client:
        for chunks in (300, 20, (1, 0, 250, 49)):
            found = model().fit(da.from_array(X, chunks=(chunks, 4)))
            assert (found.landmarks_ == expected.landmarks_).all()
            assert (found.landmark_masses_ == expected.landmark_masses_).all()
            assert (found.labels_.compute() == expected.labels_).all()
            assert left_behind(client) == []


def test_same_bits_by_processes(X, expected, client):
    rows = da.from_array(X, chunks=(40, 4))
    found = model().fit(rows)
    a, b = found.landmark_model_, expected.landmark_model_
    assert (a.embedding_ == b.embedding_).all()
    assert (found.labels_.compute() == expected.labels_).all()
    assert (found.transform(rows).compute() == expected.transform(X)).all()
    assert left_behind(client) == []


def test_a_client_that_is_not_the_current_one(X, expected, client):
    with cluster(1, False) as other, distributed.Client(other):
        found = model(client=client).fit(da.from_array(X, chunks=(100, 4)))
        assert "cdsk-sample" not in "".join(map(str, other.scheduler.task_prefixes))
        assert any(
            "cdsk-sample" in name for name in client.cluster.scheduler.task_prefixes
        )
        assert clone(found).client is client
        assert found.__getstate__()["client"] is None
        assert found.__getstate__()["params_"]["client"] is None
        assert (found.labels_.compute() == expected.labels_).all()


def test_persisted_data_stay_and_are_not_read_again(X, client, tmp_path):
    rows, reads = dask_rows.recorded(X, tmp_path, (100, 100, 100))
    rows = client.persist(rows)
    labels = model().fit(rows).labels_
    assert left_behind(client) == sorted(key for (key,) in rows.__dask_keys__())
    labels.compute()
    assert reads() == [1, 1, 1]


def test_results_are_merged_while_others_are_made(X, expected, client, monkeypatch):
    fan = importlib.import_module("cdsk.dask._tasks").FAN
    held = []
    told = "cdsk._progress.Progress.share"
    monkeypatch.setattr(
        told, lambda self, part: held.append((part, len(client.futures)))
    )
    found = model().fit(da.from_array(X, chunks=(5, 4)))
    # of 60 blocks, those that wait to be merged on two workers, and merges of them
    first = next(count for part, count in held if part == 1.0)
    assert first <= 2 * 2 * fan
    assert (found.labels_.compute() == expected.labels_).all()


def test_failures_leave_nothing_behind(X, client):
    wrong = X.copy()
    wrong[234, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN at row 234.*\(row 34 of block 2\)") as e:
        model().fit(da.from_array(wrong, chunks=(100, 4)))
    assert left_behind(client) == []
    with pytest.raises(ValueError, match="n_clusters=3 and n_samples=2") as e:
        model().fit(da.ones((2, 2), chunks=(1, 2)))
    assert left_behind(client) == []
    assert e.traceback  # which does not keep a future alive


def test_interrupt(client, tmp_path):
    X = np.random.default_rng(0).normal(size=(30_000, 20))
    rows, _ = dask_rows.recorded(X, tmp_path, (1000,) * 30)
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.6, interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            while True:
                model().fit(rows)
        assert time.perf_counter() - sent[0] < 2.0
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert left_behind(client) == []


def test_clients_that_are_refused(X, workers):
    rows = da.from_array(X, chunks=(100, 4))
    closed = distributed.Client(workers)
    closed.close()
    with pytest.raises(
        RuntimeError, match="client must be connected to a scheduler; got"
    ):
        model(client=closed).fit(rows)

    async def fit():
        address = workers.scheduler_address
        async with distributed.Client(address, asynchronous=True) as waited_for:
            model(client=waited_for).fit(rows)

    with pytest.raises(ValueError, match="client must not be asynchronous"):
        asyncio.run(fit())


def test_tasks_that_are_cancelled_by_others(X, client, monkeypatch):
    def cancel(self, part):
        held = [distributed.Future(key, client=client) for key in client.futures]
        client.cancel(held, force=True)

    rows = da.from_array(X, chunks=(10, 4))
    monkeypatch.setattr("cdsk._progress.Progress.share", cancel)
    with pytest.raises(RuntimeError, match=r"was cancelled, .*: by someone else"):
        model().fit(rows)


def test_scattered_data_that_are_lost(X, expected, client):
    client.wait_for_workers(2)
    blocks = client.scatter(np.array_split(X, 10))
    rows = da.concatenate(
        [da.from_delayed(dask.delayed(block), (30, 4), float) for block in blocks]
    )
    assert (model().fit(rows).labels_.compute() == expected.labels_).all()
    (holder, *_), *_ = client.who_has(blocks).values()
    os.kill(client.run(os.getpid)[holder], signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"scattered data that it needs.*were lost"):
        model().fit(rows)


@pytest.mark.parametrize("time", [1, 2, 3], ids=["sample", "similarities", "labels"])
def test_a_worker_that_is_killed_while_it_reads(X, expected, client, tmp_path, time):
    rows, reads = dask_rows.recorded(X, tmp_path, (30,) * 10, die=(6, time))
    found = model().fit(rows)
    assert (found.labels_.compute() == expected.labels_).all()
    assert reads()[6] > 3


@pytest.mark.parametrize("everyone", [False, True])
def test_landmarks_that_are_lost(X, expected, client, monkeypatch, everyone):
    Cluster = importlib.import_module("cdsk.dask._cluster").Cluster
    everywhere, killed = Cluster.everywhere, []

    def then_lose(self, task):
        done = everywhere(self, task)
        holders = client.who_has()[done.key]
        assert len(holders) == 2
        processes = client.run(os.getpid)
        for worker in holders[: 2 if everyone else 1]:
            os.kill(processes[worker], signal.SIGKILL)
            killed.append(worker)
        return done

    monkeypatch.setattr(Cluster, "everywhere", then_lose)
    # how long a worker that does not answer is waited for
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
        found = model().fit(da.from_array(X, chunks=(30, 4)))
    assert len(killed) == 1 + everyone
    assert (found.landmark_masses_ == expected.landmark_masses_).all()
    assert (found.labels_.compute() == expected.labels_).all()


def test_a_block_that_kills_its_workers(X, client, tmp_path, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    rows, _ = dask_rows.recorded(X, tmp_path, (30,) * 10, die=(6, 1))
    with pytest.raises(
        # 6, or one that waited on the same worker
        RuntimeError,
        match=r"ended 1 times while they worked on block \d of X.*chunks",
    ):
        model().fit(rows)
    assert left_behind(client) == []


LONELY = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(1, processes=False, dashboard_address=":0", protocol="tcp")
    print(cluster.scheduler_address, flush=True)
    time.sleep(100)
"""


@pytest.mark.parametrize("stage", ["sample", "landmarks", "similarities"])
def test_a_scheduler_that_is_lost(X, tmp_path, stage):
    program = tmp_path / "lonely.py"
    program.write_text(LONELY)
    command = [sys.executable, str(program)]
    environment = os.environ | {"PYTHONPATH": os.path.dirname(dask_rows.__file__)}
    seen = []

    entered = []

    def lose(self, part):
        if entered[-1] == stage and part >= 0.3 and not seen:
            seen.append(time.perf_counter())
            child.kill()

    def enter(self, name, *where):
        entered.append(name)
        if name == "landmarks":
            lose(self, 1.0)

    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment
        ) as child,
        pytest.MonkeyPatch.context() as patch,
    ):
        try:
            client = distributed.Client(child.stdout.readline().strip())
            rows, _ = dask_rows.recorded(X, tmp_path, (3,) * 100)
            patch.setattr("cdsk._progress.Progress.stage", enter)
            patch.setattr("cdsk._progress.Progress.share", lose)
            with pytest.raises(RuntimeError, match="client must be connected to a sch"):
                model(client=client).fit(rows)
            assert time.perf_counter() - seen[0] < 35
            client.close(timeout=1)
        finally:
            child.kill()


def wide_block(block_info=None, part=0):
    """Three clusters in 64 dimensions."""
    first, end = block_info[None]["array-location"][0]
    rng = np.random.default_rng(first)
    y = rng.integers(3, size=end - first)
    if part:
        return y
    X = rng.normal(size=(end - first, 64))
    X[:, :3] += 10.0 * np.eye(3)[y]
    return X


def test_data_larger_than_the_memory_of_all_workers():
    n, rows, limit = 1_700_000, 20_000, 400 * 2**20
    chunks = (rows,) * (n // rows)
    assert n * 64 * 8 > 2 * limit
    X = da.map_blocks(wide_block, chunks=(chunks, (64,)), dtype=float)
    y = da.map_blocks(wide_block, chunks=(chunks,), dtype=int, part=1)
    with (
        cluster(2, True, memory_limit=limit) as workers,
        distributed.Client(workers) as client,
    ):
        before = set(client.run(os.getpid).values())
        found = model(n_landmarks=50, representation="raw").fit(X)
        labels, truth = client.compute([found.labels_, y], sync=True)
        assert set(client.run(os.getpid).values()) == before
    assert adjusted_rand_score(truth, labels) > 0.999
