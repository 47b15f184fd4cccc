# SPDX-License-Identifier: BSD-3-Clause
"""Limits of the control groups of Linux, versions 1 and 2 (tests/test_cgroups.py).

Groups are nested, and a process has the smallest limit of all of them. Where a file is
absent, nothing is limited.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class ControlGroups:
    """The control groups of this process, and all groups around them.

    ``mounts`` holds the hierarchies: one of version 2, or a folder per controller.
    ``membership`` has a line ``number:controllers:path`` per hierarchy; its path may be
    absent from ``mounts``, since a container sees its own group as the root.
    """

    mounts: Path = Path("/sys/fs/cgroup")
    membership: Path = Path("/proc/self/cgroup")

    def n_processors(self) -> int | None:
        """Return the quota of processor time, rounded up; None if unlimited."""
        return min(self._limits("cpu", _processors), default=None)

    def available_bytes(self) -> int | None:
        """Return what is left of the memory limit; None or above 2**62 if unlimited."""
        return min(self._limits("memory", _available_bytes), default=None)

    def _limits(self, controller: str, read: Callable[[Path], int]) -> Iterator[int]:
        for folder in self._folders(controller):
            with suppress(LookupError, OSError, ValueError):
                yield read(folder)

    def _folders(self, controller: str) -> Iterator[Path]:
        """Yield the group of this process and those around it, in every hierarchy."""
        with suppress(OSError):
            for line in self.membership.read_text().splitlines():
                _, controllers, path = line.split(":", 2)
                if controllers == "":  # version 2, alone or beside version 1
                    mounts = [self.mounts, self.mounts / "unified"]
                elif controller in controllers.split(","):
                    mounts = [self.mounts / controller]
                else:
                    continue
                group = PurePosixPath(path.lstrip("/"))
                for mount in mounts:
                    yield from (mount / folder for folder in (group, *group.parents))


def _processors(folder: Path) -> int:
    if (folder / "cpu.max").exists():
        quota, period = (folder / "cpu.max").read_text().split()
    else:
        quota = (folder / "cpu.cfs_quota_us").read_text()
        period = (folder / "cpu.cfs_period_us").read_text()
    if int(quota) <= 0:  # "max" is no int either
        raise ValueError("no limit")
    return ceil(int(quota) / int(period))


def _available_bytes(folder: Path) -> int:
    """Return the limit minus what is in use, of which page cache can be freed."""
    names = "memory.max", "memory.current", "inactive_file"
    if not (folder / "memory.max").exists():
        names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
    limit, used = (int((folder / name).read_text()) for name in names[:2])
    lines = (folder / "memory.stat").read_text().splitlines()
    statistics = dict(line.split() for line in lines)
    return max(limit - used + int(statistics.get(names[2], 0)), 0)


@cache
def processor_quota() -> int | None:
    """Return the quota of this process at the first call, or None if unlimited."""
    return ControlGroups().n_processors()
