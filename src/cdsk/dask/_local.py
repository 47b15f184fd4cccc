# SPDX-License-Identifier: BSD-3-Clause
"""Tasks by dask's own schedulers in this process (tests/test_dask_estimator.py)."""

import dask
from dask import delayed
from dask.callbacks import Callback

from cdsk.dask._tasks import FAN, merge_task, new_key


class Local:
    """The scheduler that dask is configured for, threads as a rule."""

    def merged(self, results, merge, told):
        """What the results of an array merge to, computed."""
        tasks = results.to_delayed().ravel().tolist()
        while True:
            tasks = [
                delayed(merge_task)(
                    tasks[i : i + FAN], merge, dask_key_name=new_key("merge")
                )
                for i in range(0, len(tasks), FAN)
            ]
            if len(tasks) == 1:
                break
        with _Told(told):
            return dask.persist(tasks[0])[0]

    def everywhere(self, task):
        """A task, computed."""
        return dask.persist(task)[0]

    def value(self, collection):
        """What a collection is."""
        return dask.compute(collection)[0]


class _Told(Callback):
    """Tells what share of the tasks is done."""

    def __init__(self, told):
        super().__init__()
        self._tell = told

    def _posttask(self, key, result, dsk, state, worker_id):
        done = len(state["finished"])
        left = sum(len(state[name]) for name in ("ready", "waiting", "running"))
        self._tell(done / (done + left))
