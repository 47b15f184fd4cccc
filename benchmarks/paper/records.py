# SPDX-License-Identifier: BSD-3-Clause
"""The file of results: one JSON object per line, appended after every fit.

A record has "set", "method", "seed", the number "n" of points used, the number "of"
points in the file, "sample" (None: all points), and a "status": "done" with scores, or
"failed", "timeout", "not available".
"""

import fcntl
import json
import os
from pathlib import Path


class Records:
    """A file of records, locked against other runs."""

    def __init__(self, path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise SystemExit(
                f"{path} is used by another run. Wait for it, or pass another --out."
            ) from None
        self._file.seek(0)
        text = self._file.read()
        # an incomplete last line, of a run that was killed, is ended
        if text and not text.endswith("\n"):
            self._file.write("\n")

    def append(self, record):
        """Write a record to disk."""
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()


def read(path):
    """Return the last record for each key; incomplete lines are ignored."""
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
    """Return the key of a record."""
    return tuple(record[name] for name in ("set", "method", "sample", "seed"))
