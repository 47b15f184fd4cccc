# SPDX-License-Identifier: BSD-3-Clause
"""Ask before taking: compare an array's size with the memory that is available."""

from pathlib import Path


def check_memory(n_bytes, what, advice):
    """Raise MemoryError with figures if ``n_bytes`` are known not to be available."""
    available = available_bytes()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs {n_bytes:,} bytes ({n_bytes / 2**30:.1f} GiB), but only "
            f"{available:,} bytes ({available / 2**30:.1f} GiB) are available. {advice}"
        )


def available_bytes():
    """Memory this process may still take, or None where it cannot be told."""
    known = [size for size in (_system(), _control_group()) if size is not None]
    return min(known) if known else None


def _system(meminfo=Path("/proc/meminfo")):
    try:
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _control_group(folder=Path("/sys/fs/cgroup")):
    """What is left of a container's limit (cgroup v2), page cache not counted."""
    try:
        limit = (folder / "memory.max").read_text().strip()
        if limit == "max":
            return None
        used = int((folder / "memory.current").read_text())
        statistics = dict(
            line.split() for line in (folder / "memory.stat").read_text().splitlines()
        )
        cache = int(statistics.get("inactive_file", 0))
        return max(int(limit) - used + cache, 0)
    except (OSError, ValueError):
        return None
