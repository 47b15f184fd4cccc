"""cdsk.dask.CDSK on workers: the same bits for any number, and after failures."""

import asyncio
import importlib
import os
import signal
import subprocess
import sys
import threading

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

# warnings of distributed about closing sockets and event loops
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]


# Timeout in seconds; nothing waits that long unless a test fails.
PATIENCE = 600


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
    """Two processes; every test has a client of its own."""
    with cluster(2, True) as workers:
        yield workers


@pytest.fixture
def fresh_client():
    """A client of two processes of one test, which kills some of them."""
    with cluster(2, True) as workers, distributed.Client(workers) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture
def client(workers):
    with distributed.Client(workers) as client:
        client.wait_for_workers(2)
        yield client


class Forgotten(distributed.diagnostics.plugin.SchedulerPlugin):
    """Notifies those who wait when the scheduler has forgotten a task."""

    name = "forgotten"

    def __init__(self, scheduler):
        self.condition, self._loop = threading.Condition(), scheduler.loop

    def transition(self, key, start, finish, *args, **kwargs):
        if finish == "forgotten":  # the task is still there until this returns
            self._loop.add_callback(self._notify)

    def _notify(self):
        with self.condition:
            self.condition.notify_all()


def left_behind(client):
    """Return what client and scheduler still hold after all tasks have ended."""
    scheduler = client.cluster.scheduler
    forgotten = Forgotten(scheduler)

    def held():
        return sorted({*client.futures, *scheduler.tasks}, key=str)

    def nothing_of_a_fit():
        return not any("cdsk" in str(key) for key in held())

    scheduler.add_plugin(forgotten)
    with forgotten.condition:
        forgotten.condition.wait_for(nothing_of_a_fit, timeout=PATIENCE)
    scheduler.remove_plugin(forgotten.name)
    return held()


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_same_bits_for_any_workers(X, expected, n_workers):
    with cluster(n_workers, False) as workers, distributed.Client(workers) as client:
        for chunks in (300, 20, (1, 0, 250, 49)):
            found = model().fit(da.from_array(X, chunks=(chunks, 4)))
            assert (found.landmarks_ == expected.landmarks_).all()
            assert (found.landmark_counts_ == expected.landmark_counts_).all()
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


def test_persisted_data_are_kept_and_not_read_again(X, client, tmp_path):
    rows, reads = dask_rows.recorded(X, tmp_path, (100, 100, 100))
    rows = client.persist(rows)
    labels = model().fit(rows).labels_
    assert left_behind(client) == sorted(key for (key,) in rows.__dask_keys__())
    labels.compute()
    assert reads() == [1, 1, 1]


def test_results_are_merged_while_others_are_computed(X, expected, client, monkeypatch):
    fan_in = importlib.import_module("cdsk.dask._tasks").MERGE_FAN_IN
    held = []
    monkeypatch.setattr(
        "cdsk._utils.Progress.update",
        lambda self, part: held.append((part, len(client.futures))),
    )
    found = model().fit(da.from_array(X, chunks=(5, 4)))
    # of 60 results, only those that wait for a merge on two workers, and their merges
    first = next(count for part, count in held if part == 1.0)
    assert first <= 2 * 2 * fan_in
    assert (found.labels_.compute() == expected.labels_).all()


def test_failures_leave_nothing_behind(X, client):
    wrong = X.copy()
    wrong[234, 1] = np.inf
    with pytest.raises(
        ValueError, match=r"infinity at row 234.*\(row 34 of block 2\)"
    ) as e:
        model().fit(da.from_array(wrong, chunks=(100, 4)))
    assert left_behind(client) == []
    with pytest.raises(ValueError, match="n_clusters=3 and n_samples=2") as e:
        model().fit(da.ones((2, 2), chunks=(1, 2)))
    assert left_behind(client) == []
    assert e.traceback  # does not keep a future alive


@pytest.mark.parametrize(
    ("target", "k"),
    [
        # while blocks are read: of the sample, of the similarities
        ("cdsk._utils.Progress.update", 1),
        ("cdsk._utils.Progress.update", 2),
        # while waiting for the sample, its size, the landmarks
        *(("cdsk.dask._cluster.wait", k) for k in (1, 2, 3)),
    ],
)
def test_interrupt(X, expected, client, interrupt_call, target, k):
    rows, found = da.from_array(X, chunks=(30, 4)), model()
    before = vars(found).copy()
    interrupt_call(target, k)
    with pytest.raises(KeyboardInterrupt):
        found.fit(rows)
    assert vars(found) == before
    assert left_behind(client) == []
    # the workers are free for the next fit
    assert (found.fit(rows).labels_.compute() == expected.labels_).all()


def test_invalid_clients(X, workers):
    rows = da.from_array(X, chunks=(100, 4))
    closed = distributed.Client(workers)
    closed.close()
    with pytest.raises(
        RuntimeError, match="client must be connected to a scheduler; got"
    ):
        model(client=closed).fit(rows)

    async def fit():
        address = workers.scheduler_address
        async with distributed.Client(address, asynchronous=True) as client:
            model(client=client).fit(rows)

    with pytest.raises(ValueError, match="client must be synchronous"):
        asyncio.run(fit())


def test_cancelled_tasks(X, client, monkeypatch):
    def cancel(self, part):
        held = [distributed.Future(key, client=client) for key in client.futures]
        client.cancel(held, force=True)

    rows = da.from_array(X, chunks=(10, 4))
    monkeypatch.setattr("cdsk._utils.Progress.update", cancel)
    with pytest.raises(RuntimeError, match=r"was cancelled: by another client"):
        model().fit(rows)


def test_lost_scattered_data(X, expected, fresh_client):
    blocks = fresh_client.scatter(np.array_split(X, 10))
    rows = da.concatenate(
        [da.from_delayed(dask.delayed(block), (30, 4), float) for block in blocks]
    )
    assert (model().fit(rows).labels_.compute() == expected.labels_).all()
    (holder, *_), *_ = fresh_client.who_has(blocks).values()
    os.kill(fresh_client.run(os.getpid)[holder], signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"scattered data were lost"):
        model().fit(rows)


@pytest.mark.parametrize("read", [1, 2, 3], ids=["sample", "similarities", "labels"])
def test_a_worker_killed_while_reading(X, expected, fresh_client, tmp_path, read):
    rows, reads = dask_rows.recorded(X, tmp_path, (30,) * 10, die=(6, read))
    found = model().fit(rows)
    assert (found.labels_.compute() == expected.labels_).all()
    assert reads()[6] > 3


@pytest.mark.parametrize("all_workers", [False, True])
def test_lost_landmarks(X, expected, fresh_client, monkeypatch, all_workers):
    Cluster = importlib.import_module("cdsk.dask._cluster").Cluster
    replicate, killed = Cluster.replicate, []

    def replicate_and_kill(self, task):
        done = replicate(self, task)
        holders = fresh_client.who_has()[done.key]
        assert len(holders) == 2
        processes = fresh_client.run(os.getpid)
        for worker in holders[: 2 if all_workers else 1]:
            os.kill(processes[worker], signal.SIGKILL)
            killed.append(worker)
        return done

    monkeypatch.setattr(Cluster, "replicate", replicate_and_kill)
    found = model().fit(da.from_array(X, chunks=(30, 4)))
    assert len(killed) == 1 + all_workers
    assert (found.landmark_counts_ == expected.landmark_counts_).all()
    assert (found.labels_.compute() == expected.labels_).all()


def test_a_chunk_that_kills_its_workers(X, fresh_client, tmp_path, monkeypatch):
    monkeypatch.setattr(fresh_client.cluster.scheduler, "allowed_failures", 0)
    rows, _ = dask_rows.recorded(X, tmp_path, (30,) * 10, die=(6, 1))
    with pytest.raises(
        # block 6, or one queued on the same worker
        RuntimeError,
        match=r"ended 1 times while processing block \d of X.*chunks",
    ):
        model().fit(rows)
    assert left_behind(fresh_client) == []


LONELY = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(1, processes=False, dashboard_address=":0", protocol="tcp")
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("stage", ["sample", "landmarks", "similarities"])
def test_a_scheduler_that_is_lost(X, tmp_path, stage):
    program = tmp_path / "lonely.py"
    program.write_text(LONELY)
    command = [sys.executable, str(program)]
    folders = [os.path.dirname(dask_rows.__file__), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    killed, entered = [], []

    def lose(self, part):
        if entered[-1] == stage and part >= 0.3 and not killed:
            killed.append(stage)
            child.kill()

    def enter(self, name, *where):
        entered.append(name)
        if name == "landmarks":
            lose(self, 1.0)

    with (
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as child,
        pytest.MonkeyPatch.context() as patch,
    ):
        try:
            client = distributed.Client(child.stdout.readline().strip())
            rows, _ = dask_rows.recorded(X, tmp_path, (3,) * 100)
            patch.setattr("cdsk._utils.Progress.stage", enter)
            patch.setattr("cdsk._utils.Progress.update", lose)
            with pytest.raises(RuntimeError, match="client must be connected to a sch"):
                model(client=client).fit(rows)
            assert killed == [stage]
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
