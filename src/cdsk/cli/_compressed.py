# SPDX-License-Identifier: BSD-3-Clause
"""Compressed files, opened by the suffix of their name (tests/test_tables.py)."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any

# Errors of files that are missing, unreadable or damaged.
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)


def _open_zstd(path, mode, **options):
    """Open a file of one or more zstandard frames, decompressed into memory."""
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            f"Reading {path} requires zstandard, which is not installed: pip install "
            "cdsk[zstd]"
        ) from None
    with open(path, "rb") as file:
        compressed = file.read()
    content = io.BytesIO()
    try:
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
