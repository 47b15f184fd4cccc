# SPDX-License-Identifier: BSD-3-Clause
"""Tasks by the workers of a client (tests/test_dask_cluster.py).

Results are merged with those on the same worker first, whatever blocks they are of, and
only what is left of every worker travels. Nothing is scattered: all that workers hold
is made by tasks, and made again if a worker is lost.
"""

from collections import defaultdict
from contextlib import suppress
from weakref import ref

from dask.delayed import Delayed
from distributed import CancelledError, KilledWorker, as_completed, futures_of, wait
from distributed.comm import CommClosedError

from cdsk.dask._tasks import FAN, merge_task, new_key


class Cluster:
    """A client's workers. No future of ours is left when the ``with`` block ends."""

    def __init__(self, client):
        if client.asynchronous:
            raise ValueError(
                "client must not be asynchronous, as fit waits for results; got "
                f"{client}."
            )
        self._client = client
        self._check_connection()
        self._futures = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for held in self._futures:
            future = held()
            if future is not None:
                future.release()
        if isinstance(error, CommClosedError):
            raise _lost(self._client) from error
        if isinstance(error, OSError | CancelledError):
            self._check_connection(error)

    def merged(self, results, merge, told):
        """What the results of an array merge to, on some worker."""
        futures = self._held(futures_of(self._client.persist(results)))
        of_blocks, done = {future.key for future in futures}, 0
        completed = as_completed(futures, loop=self._client.loop)
        del futures  # each goes as soon as it has been merged
        waiting = defaultdict(list)
        for batch in completed.batches():
            self._check(batch)
            workers = self._client.who_has(batch)
            for future in batch:
                holders = workers.get(future.key, ())
                waiting[next(iter(holders), None)].append(future)
            done += sum(future.key in of_blocks for future in batch)
            del batch, future
            for there in waiting.values():
                if len(there) >= FAN:
                    completed.add(self._merge(there, merge))
                    there.clear()
            told(done / len(of_blocks))
        tasks = [self._merge(there, merge) for there in waiting.values() if there]
        waiting.clear()
        while len(tasks) > 1:
            tasks = [
                self._merge(tasks[i : i + FAN], merge)
                for i in range(0, len(tasks), FAN)
            ]
        return self._done(tasks[0])

    def everywhere(self, task):
        """A task, computed by one worker and copied to all."""
        (future,) = self._held(futures_of(self._client.persist(task)))
        task = self._done(future)
        self._client.replicate([future])
        return task

    def value(self, collection):
        """What a collection is."""
        (future,) = self._held([self._client.compute(collection)])
        self._done(future)
        return future.result()

    def _merge(self, futures, merge):
        # before blocks that have not been read yet
        task = self._client.submit(
            merge_task, list(futures), merge, key=new_key("merge"), priority=1
        )
        return self._held([task])[0]

    def _held(self, futures):
        self._futures += map(ref, futures)
        return futures

    def _done(self, future):
        with suppress(CancelledError):
            wait(future)
        self._check([future])
        return Delayed(future.key, {future.key: future})

    def _check(self, futures):
        for future in futures:
            if future.status == "cancelled":
                self._check_connection()
                raise RuntimeError(
                    f"A task of the fit was cancelled, {future.key}: by someone else, "
                    "or because scattered data that it needs, which no task can make "
                    "again, were lost with their worker. Expected it to be left alone, "
                    "and data that tasks read or make."
                )
            if future.status == "error":
                error = future.exception()
                if isinstance(error, KilledWorker):
                    raise _in_words(future.key, error) from error
                raise error

    def _check_connection(self, error=None):
        if self._client.status != "running":
            raise _lost(self._client) from error


def _lost(client):
    return RuntimeError(
        f"client must be connected to a scheduler; got {client}, whose "
        "scheduler may have ended."
    )


def _in_words(key, error):
    where = f"block {key[1]} of X" if isinstance(key, tuple) else "merged results"
    return RuntimeError(
        f"Workers ended {error.allowed_failures + 1} times while they worked on "
        f"{where}, most likely for lack of memory. Use smaller chunks, or workers with "
        "more memory."
    )
