# SPDX-License-Identifier: BSD-3-Clause
"""How far a fit is: stages, a bar with the time left, rounds.

Everything goes to standard error, so that a pipe gets the results alone. With tqdm
there is a bar, without it a line per stage and, in long ones, every ten seconds.
"""

import sys
import time

# The stages of a fit in their order, and about what part of its time each takes.
_PARTS = {
    "representation": 0.05,
    "count": 0.10,
    "lam": 0.05,
    "neighbours": 0.10,
    "kernels": 0.50,
    "winner": 0.17,
    "margins": 0.03,
}

# Seconds between two lines of one stage, and those before the time left is told.
_PAUSE, _EARLY = 10.0, 1.0


class Progress:
    """Tells what a fit does while its ``with`` block lasts.

    ``verbose`` is 0 for nothing, 1 for stages, 2 for the rounds as well. ``parts`` are
    the stages of another estimator.
    """

    def __init__(self, verbose=0, parts=_PARTS):
        self.verbose = int(verbose)
        self._parts = parts
        self._bar = None
        # seconds in every stage that was entered
        self._seconds = {}
        self._name, self._what, self._span = "", "", (0.0, 1.0)
        self._done = 0.0

    def __enter__(self):
        self._begun = self._entered = self._told = time.perf_counter()
        if self.verbose:
            self._bar = _bar()
        return self

    def __exit__(self, kind, error, trace):
        if not self.verbose:
            return
        if kind is None:
            self._leave()
            total = time.perf_counter() - self._begun
            shares = [
                f"{name} {seconds / max(total, 1e-9):.0%}"
                for name, seconds in self._seconds.items()
            ]
            self.say(f"[CDSK] done in {total:.1f} s: {', '.join(shares)}")
        if self._bar is not None:
            self._bar.close()

    def stage(self, name, what=None, span=(0.0, 1.0)):
        """Enter a stage, or one part of it, from and to the shares of ``span``."""
        if self.verbose:
            self._leave()
            self._name, self._what, self._span = name, what or name, span
            self._show(0.0, always=True)

    def share(self, part):
        """Tell what part of the stage is done."""
        if self.verbose:
            self._show(part)

    def round(self, result):
        """Tell the ``Round`` of an alternation."""
        if self.verbose > 1:
            status = "" if result.accepted else "  not lower: not accepted"
            self.say(
                f"[CDSK] round {result.number:2d}  merit {result.merit:.6g}  trace "
                f"{result.trace:.4g}  support {result.n_support}  QP gap "
                f"{result.qp_gap:.1e}  {result.seconds:.2f} s{status}"
            )
        # how many will follow is not known: about as many again
        self.share(1.0 - 0.5 ** (result.number + 1))

    def listener(self, other):
        """What a search tells its shares to, ``other`` as well; None if silent."""
        if not self.verbose:
            return None

        def told(part):
            other(part)
            self.share(part)

        return told

    def say(self, line):
        """Print a line, above the bar if there is one."""
        if self._bar is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self._bar.write(line, file=sys.stderr)

    def _leave(self):
        now = time.perf_counter()
        if self._name:
            spent = self._seconds.get(self._name, 0.0)
            self._seconds[self._name] = spent + now - self._entered
        self._entered = now

    def _show(self, part, always=False):
        names = list(self._parts)
        earlier = names[: names.index(self._name)]
        before = sum(self._parts[name] for name in earlier)
        begin, end = self._span
        done = before + self._parts[self._name] * (begin + (end - begin) * part)
        # the fits of a stage each begin anew
        done = self._done = max(done, self._done)
        now = time.perf_counter()
        spent = now - self._begun
        skipped = sum(
            self._parts[name] for name in earlier if name not in self._seconds
        )
        left = ""
        if done > skipped and spent >= _EARLY:
            left = f"about {spent * (1.0 - done) / (done - skipped):.0f} s left"
        if self._bar is not None:
            self._bar.set_description_str(f"[CDSK] {self._what}", refresh=False)
            self._bar.set_postfix_str(left, refresh=False)
            self._bar.n = done
            self._bar.refresh()
        elif always or now - self._told >= _PAUSE:
            self._told = now
            self.say(f"[CDSK] {done:4.0%}  {self._what}" + f"  ({left})" * bool(left))


def _bar():
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(
        total=1.0,
        file=sys.stderr,
        leave=False,
        dynamic_ncols=True,
        bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}",
    )
