# SPDX-License-Identifier: BSD-3-Clause
"""Tasks on dask's schedulers in this process (tests/test_dask_estimator.py)."""

import dask
from dask import delayed
from dask.callbacks import Callback

from cdsk.dask._tasks import MERGE_FAN_IN, make_key, merge_task


class Local:
    """The scheduler that dask is configured for, by default threads."""

    def merge(self, results, function, callback):
        """Return the merged results of an array, computed."""
        tasks = results.to_delayed().ravel().tolist()
        while True:
            tasks = [
                delayed(merge_task)(
                    tasks[i : i + MERGE_FAN_IN],
                    function,
                    dask_key_name=make_key("merge"),
                )
                for i in range(0, len(tasks), MERGE_FAN_IN)
            ]
            if len(tasks) == 1:
                break
        with _ProgressCallback(callback):
            return dask.persist(tasks[0])[0]

    def replicate(self, task):
        """Return a task, computed."""
        return dask.persist(task)[0]

    def compute(self, collection):
        """Return the value of a collection."""
        return dask.compute(collection)[0]


class _ProgressCallback(Callback):
    """Call a function with the completed fraction of the tasks."""

    def __init__(self, callback):
        super().__init__()
        self._report = callback  # _callback is a property of dask's class

    def _posttask(self, key, result, dsk, state, worker_id):
        done = len(state["finished"])
        left = sum(len(state[name]) for name in ("ready", "waiting", "running"))
        self._report(done / (done + left))
