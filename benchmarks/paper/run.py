# SPDX-License-Identifier: BSD-3-Clause
"""Run all methods on all data sets, each pair in a process that runs all seeds."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from benchmarks.paper.methods import METHODS
from benchmarks.paper.records import Records, key, read

# Seconds to start a process and read its data, in addition to the budget.
_START = 300.0
# Threads that wait for each other would count as processor time.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
# Seconds between two checks of the time, and between two lines without tqdm.
_POLL_INTERVAL, _PRINT_INTERVAL = 0.2, 10.0


@dataclass(frozen=True)
class Task:
    """A method on a set, or on ``sample`` of its ``of`` points, for some seeds."""

    set: str
    method: str
    sample: int | None
    of: int
    seeds: tuple[int, ...]

    def record(self, seed, **found):
        """Return the record of one seed."""
        what = {"set": self.set, "method": self.method, "sample": self.sample}
        return what | {"of": self.of, "seed": seed} | found

    @property
    def work(self):
        """Relative cost of one seed, to estimate the time left."""
        return min(self.of, self.sample or self.of)


def tasks(options, known):
    """Return the remaining tasks, small sets first; ``known`` is from ``read``."""
    found = []
    for name in options.sets:
        n = _n_points(Path(options.data, f"{name}.npz"))
        for method in options.methods:
            limit = METHODS[method].limit
            sample = options.sample if limit is not None and n > limit else None
            if METHODS[method].only_sampled and sample is None:
                continue
            whole = Task(name, method, sample, n, ())
            seeds = tuple(
                seed
                for seed in range(options.repeats)
                if not _finished(known.get(key(whole.record(seed))), n, options)
            )
            if seeds:
                found.append(Task(name, method, sample, n, seeds))
    return sorted(found, key=lambda task: task.of)


def _n_points(path):
    """Return the number of points in a file; 0 if the worker cannot read it either."""
    try:
        with open(path, "rb") as file, np.load(file) as archive:
            return archive["y"].size
    except (KeyError, OSError, ValueError, EOFError, BadZipFile):
        return 0


def _finished(record, n, options):
    if record is None or options.redo == "all":
        return False
    if record["of"] != n:  # of other data
        return False
    if record["status"] == "done":
        return True
    if record["status"] == "not available" or options.redo == "failed":
        return False
    # with a larger budget it may finish
    return record["status"] != "timeout" or record["budget"] >= options.budget


def run(options, path, after_task):
    """Run all tasks and append their records to the file ``path``."""
    waiting, running = deque(tasks(options, read(path))), set()
    progress = _Progress(sum(task.work * len(task.seeds) for task in waiting))
    with Records(path) as records, selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < options.jobs:
                    worker = _Worker(waiting.popleft(), options)
                    running.add(worker)
                    selector.register(worker.output, selectors.EVENT_READ, worker)
                ready = {event.data for event, _ in selector.select(_POLL_INTERVAL)}
                for worker in list(running):
                    for record in worker.iter_records(worker in ready):
                        records.append(record)
                        progress.add(worker.task.work)
                    if worker.ended:
                        selector.unregister(worker.output)
                        running.remove(worker)
                        worker.stop()
                        after_task()
                progress.show([worker.task for worker in running])
        finally:
            for worker in running:
                worker.stop()
            progress.close()


class _Worker:
    """A process that runs a task."""

    def __init__(self, task, options):
        self.task, self.budget, self.ended = task, options.budget, False
        self._left, self._n, self._line = deque(task.seeds), None, b""
        self._deadline = time.monotonic() + _START
        self._stderr = tempfile.TemporaryFile()
        arguments = [task.set, task.method, options.mode, task.seeds]
        arguments += [str(Path(options.data).absolute()), task.sample]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.paper.worker", json.dumps(arguments)],
            cwd=Path(__file__).parents[2],
            # the worker ends when this is closed, also if this process is killed
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=os.environ | _ONE_THREAD,
            start_new_session=True,
        )
        self.output = self._process.stdout

    def iter_records(self, ready):
        """Yield records of finished seeds, and of all others once the worker has ended.

        If a seed exceeds the budget, all later ones are recorded as timeouts.
        """
        if ready:
            read = os.read(self.output.fileno(), 1 << 16)
            *lines, self._line = (self._line + read).split(b"\n")
            for line in lines:
                self._deadline = time.monotonic() + self.budget
                message = json.loads(line)
                if self._n is None:
                    self._n = message["n"]
                elif message.pop("clock") > self.budget:  # finished between two checks
                    yield from self._time_out()
                    return
                else:
                    self._left.popleft()
                    yield self.task.record(n=self._n, **message)
            if not read:
                self.ended = True
                if self._left:
                    yield from self._record_rest(
                        status="failed", reason=self._describe_exit()
                    )
        elif time.monotonic() > self._deadline:
            yield from self._time_out()

    def _time_out(self):
        self.ended = True
        yield from self._record_rest(status="timeout", budget=self.budget)

    def _record_rest(self, **found):
        for seed in self._left:
            yield self.task.record(seed, n=self._n, **found)

    def _describe_exit(self):
        code = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return f"exit code {code}: {(lines or ['no error message'])[-1]}"

    def stop(self):
        """Kill the process and its children, if they have not ended."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        for file in (self._process.stdin, self.output, self._stderr):
            file.close()


class _Progress:
    """A progress bar with the time left; without tqdm, lines at intervals."""

    def __init__(self, total):
        self._total, self._done = total, 0
        self._started = self._last_printed = time.monotonic()
        self._bar = None
        try:
            from tqdm import tqdm
        except ImportError:
            return
        self._bar = tqdm(
            total=total,
            file=sys.stderr,
            dynamic_ncols=True,
            mininterval=1.0,
            bar_format="{percentage:3.0f}%|{bar}| {elapsed}{postfix}",
        )

    def add(self, work):
        self._done += work

    def show(self, running):
        spent, left = time.monotonic() - self._started, ""
        if self._done:
            seconds = spent * (self._total - self._done) / self._done
            shown = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
            left = f"about {shown} left; "
        left += ", ".join(f"{task.method} on {task.set}" for task in running)
        if self._bar is not None:
            self._bar.set_postfix_str(left, refresh=False)
            self._bar.update(self._done - self._bar.n)
        elif time.monotonic() - self._last_printed >= _PRINT_INTERVAL:
            self._last_printed = time.monotonic()
            share = self._done / max(self._total, 1)
            print(f"{share:4.0%}  {left}", file=sys.stderr, flush=True)

    def close(self):
        if self._bar is not None:
            self._bar.close()
