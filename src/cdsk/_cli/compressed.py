# SPDX-License-Identifier: BSD-3-Clause
"""Compressed files, opened by the ending of their name (tests/test_tables.py)."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any

# How a file that cannot be read, or is damaged, is told.
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)


def _open_zstd(path, mode, **options):
    """The whole content, in memory."""
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            f"To read {path} takes zstandard, which is not installed: pip install "
            "cdsk[zstd]"
        ) from None
    with open(path, "rb") as file:
        compressed = file.read()
    content = io.BytesIO()
    try:
        # one frame after another
        while compressed:
            frame = zstandard.ZstdDecompressor().decompressobj()
            content.write(frame.decompress(compressed))
            if not frame.eof:
                raise EOFError("Compressed file ended before its end was marked")
            compressed = frame.unused_data
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from None
    content.seek(0)
    return content if mode == "rb" else io.TextIOWrapper(content, **options)


OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}
