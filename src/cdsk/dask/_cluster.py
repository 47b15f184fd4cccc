# SPDX-License-Identifier: BSD-3-Clause
"""Tasks on the workers of a client (tests/test_dask_cluster.py).

Results are first merged with those on the same worker, whatever their chunks, and only
one result per worker is sent. Nothing is scattered: all data on workers are results of
tasks, which are computed again if a worker is lost.
"""

from collections import defaultdict
from contextlib import suppress
from weakref import ref

from dask.delayed import Delayed
from distributed import CancelledError, KilledWorker, as_completed, futures_of, wait
from distributed.comm import CommClosedError

from cdsk.dask._tasks import MERGE_FAN_IN, make_key, merge_task


class Cluster:
    """The workers of a client; all futures are released at the end of ``with``."""

    def __init__(self, client):
        if client.asynchronous:
            raise ValueError(
                f"client must be synchronous, as fit waits for results; got {client}."
            )
        self._client = client
        self._check_connection()
        self._futures = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for reference in self._futures:
            future = reference()
            if future is not None:
                future.release()
        if isinstance(error, CommClosedError):
            raise _connection_error(self._client) from error
        if isinstance(error, OSError | CancelledError):
            self._check_connection(error)

    def merge(self, results, function, callback):
        """Return the merged results of an array, as a task on some worker."""
        futures = self._track(futures_of(self._client.persist(results)))
        chunk_keys, n_done = {future.key for future in futures}, 0
        completed = as_completed(futures, loop=self._client.loop)
        del futures  # each is released as soon as it has been merged
        pending = defaultdict(list)
        for batch in completed.batches():
            self._check(batch)
            workers = self._client.who_has(batch)
            for future in batch:
                holders = workers.get(future.key, ())
                pending[next(iter(holders), None)].append(future)
            n_done += sum(future.key in chunk_keys for future in batch)
            del batch, future
            for on_worker in pending.values():
                if len(on_worker) >= MERGE_FAN_IN:
                    completed.add(self._submit_merge(on_worker, function))
                    on_worker.clear()
            callback(n_done / len(chunk_keys))
        tasks = [
            self._submit_merge(on_worker, function)
            for on_worker in pending.values()
            if on_worker
        ]
        pending.clear()
        while len(tasks) > 1:
            tasks = [
                self._submit_merge(tasks[i : i + MERGE_FAN_IN], function)
                for i in range(0, len(tasks), MERGE_FAN_IN)
            ]
        return self._wait(tasks[0])

    def replicate(self, task):
        """Return a task, computed by one worker and copied to all."""
        (future,) = self._track(futures_of(self._client.persist(task)))
        task = self._wait(future)
        self._client.replicate([future])
        return task

    def compute(self, collection):
        """Return the value of a collection."""
        (future,) = self._track([self._client.compute(collection)])
        self._wait(future)
        return future.result()

    def _submit_merge(self, futures, function):
        # with priority over chunks that have not been read yet
        future = self._client.submit(
            merge_task, list(futures), function, key=make_key("merge"), priority=1
        )
        return self._track([future])[0]

    def _track(self, futures):
        self._futures += map(ref, futures)
        return futures

    def _wait(self, future):
        """Wait for a future, and return it as a task."""
        with suppress(CancelledError):
            wait(future)
        self._check([future])
        return Delayed(future.key, {future.key: future})

    def _check(self, futures):
        """Raise the error of any future that failed."""
        for future in futures:
            if future.status == "cancelled":
                self._check_connection()
                raise RuntimeError(
                    f"Task {future.key} of the fit was cancelled: by another client, "
                    "or because scattered data were lost with their worker, which no "
                    "task can compute again. Use data that tasks read or compute."
                )
            if future.status == "error":
                error = future.exception()
                if isinstance(error, KilledWorker):
                    raise _worker_error(future.key, error) from error
                raise error

    def _check_connection(self, error=None):
        if self._client.status != "running":
            raise _connection_error(self._client) from error


def _connection_error(client):
    return RuntimeError(
        f"client must be connected to a scheduler; got {client}, whose "
        "scheduler may have ended."
    )


def _worker_error(key, error):
    task = f"block {key[1]} of X" if isinstance(key, tuple) else "merged results"
    return RuntimeError(
        f"Workers ended {error.allowed_failures + 1} times while processing {task}, "
        "probably for lack of memory. Use smaller chunks, or workers with more memory."
    )
