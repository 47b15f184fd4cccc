# SPDX-License-Identifier: BSD-3-Clause
"""All methods on all sets, each pair in a process that goes through the seeds."""

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

# Seconds to start a process and read its data, which no budget counts.
_START = 300.0
# Several threads that wait for each other would count as processor time.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
# Seconds between two looks at the clock, and between two lines without tqdm.
_LOOK, _PAUSE = 0.2, 10.0


@dataclass(frozen=True)
class Task:
    """A method on a set, or on ``sample`` of its ``of`` points, for some seeds."""

    set: str
    method: str
    sample: int | None
    of: int
    seeds: tuple[int, ...]

    def record(self, seed, **found):
        """The record of one seed."""
        what = {"set": self.set, "method": self.method, "sample": self.sample}
        return what | {"of": self.of, "seed": seed} | found

    @property
    def work(self):
        """About what one seed takes, compared with others."""
        return min(self.of, self.sample or self.of)


def tasks(options, known):
    """What is left to do, small sets first; ``known`` is what ``read`` returns."""
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
    """Number of points in a file; 0 if it cannot be read, of which a side will tell."""
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
    # with more time it may end
    return record["status"] != "timeout" or record["budget"] >= options.budget


def run(options, path, after_task):
    """Do all tasks and append what is found to the file ``path``."""
    waiting, at_work = deque(tasks(options, read(path))), set()
    progress = _Progress(sum(task.work * len(task.seeds) for task in waiting))
    with Records(path) as records, selectors.DefaultSelector() as selector:
        try:
            while waiting or at_work:
                while waiting and len(at_work) < options.jobs:
                    side = _Side(waiting.popleft(), options)
                    at_work.add(side)
                    selector.register(side.output, selectors.EVENT_READ, side)
                ready = {event.data for event, _ in selector.select(_LOOK)}
                for side in list(at_work):
                    for record in side.found(side in ready):
                        records.append(record)
                        progress.add(side.task.work)
                    if side.ended:
                        selector.unregister(side.output)
                        at_work.remove(side)
                        side.stop()
                        after_task()
                progress.show([side.task for side in at_work])
        finally:
            for side in at_work:
                side.stop()
            progress.close()


class _Side:
    """A process at work on a task."""

    def __init__(self, task, options):
        self.task, self.budget, self.ended = task, options.budget, False
        self._left, self._n, self._line = deque(task.seeds), None, b""
        self._until = time.monotonic() + _START
        self._said = tempfile.TemporaryFile()
        asked = [task.set, task.method, options.mode, task.seeds]
        asked += [str(Path(options.data).absolute()), task.sample]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.paper.side", json.dumps(asked)],
            cwd=Path(__file__).parents[2],
            # it ends when this is closed, by us or because we are no more
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=os.environ | _ONE_THREAD,
            start_new_session=True,
        )
        self.output = self._process.stdout

    def found(self, ready):
        """Yield records: of seeds that are done, or of all that never will be.

        A seed that takes too long speaks for those after it.
        """
        if ready:
            read = os.read(self.output.fileno(), 1 << 16)
            *lines, self._line = (self._line + read).split(b"\n")
            for line in lines:
                self._until = time.monotonic() + self.budget
                told = json.loads(line)
                if self._n is None:
                    self._n = told["n"]
                elif told.pop("clock") > self.budget:  # it was quicker than our look
                    yield from self._too_late()
                    return
                else:
                    self._left.popleft()
                    yield self.task.record(n=self._n, **told)
            if not read:
                self.ended = True
                if self._left:
                    yield from self._rest(status="failed", reason=self._last_words())
        elif time.monotonic() > self._until:
            yield from self._too_late()

    def _too_late(self):
        self.ended = True
        yield from self._rest(status="timeout", budget=self.budget)

    def _rest(self, **found):
        for seed in self._left:
            yield self.task.record(seed, n=self._n, **found)

    def _last_words(self):
        code = self._process.wait()
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        return f"exit code {code}: {(said or ['no word'])[-1]}"

    def stop(self):
        """End the process, if it has not ended, and all that it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        for file in (self._process.stdin, self.output, self._said):
            file.close()


class _Progress:
    """A bar with the time left, or a line now and then where there is no tqdm."""

    def __init__(self, total):
        self._total, self._done = total, 0
        self._begun = self._told = time.monotonic()
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

    def show(self, at_work):
        spent, left = time.monotonic() - self._begun, ""
        if self._done:
            seconds = spent * (self._total - self._done) / self._done
            shown = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
            left = f"about {shown} left; "
        left += ", ".join(f"{task.method} on {task.set}" for task in at_work)
        if self._bar is not None:
            self._bar.set_postfix_str(left, refresh=False)
            self._bar.update(self._done - self._bar.n)
        elif time.monotonic() - self._told >= _PAUSE:
            self._told = time.monotonic()
            share = self._done / max(self._total, 1)
            print(f"{share:4.0%}  {left}", file=sys.stderr, flush=True)

    def close(self):
        if self._bar is not None:
            self._bar.close()
