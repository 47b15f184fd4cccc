# SPDX-License-Identifier: BSD-3-Clause
"""The file of what was measured: a JSON object per line, appended at once.

A record has "set", "method", "seed", "n" points "of" those in the file, "sample" (None:
all), and a "status": "done" with scores, or "failed", "timeout", "not available".
"""

import fcntl
import json
import os
from pathlib import Path


class Records:
    """Appends to a file that no other run writes to."""

    def __init__(self, path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise SystemExit(f"Another run writes to {path}.") from None
        self._file.seek(0)
        text = self._file.read()
        # a line that a killed run did not finish stays alone
        if text and not text.endswith("\n"):
            self._file.write("\n")

    def append(self, record):
        """Write a record so that it outlives this process."""
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()


def read(path):
    """(set, method, sample, seed) -> its last record; lines cut short are ignored."""
    found = {}
    if Path(path).exists():
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
                found[key(record)] = record
            except (ValueError, KeyError, TypeError):
                continue
    return found


def key(record):
    """What is measured once."""
    return tuple(record[name] for name in ("set", "method", "sample", "seed"))
