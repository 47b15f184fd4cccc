# SPDX-License-Identifier: BSD-3-Clause
"""Pack points into the tiles that the loops of simd.c read (layout: simd.h)."""
from cython cimport floating

from cdsk._simd cimport CDSK_GROUP, CDSK_TILE


cdef inline Py_ssize_t n_tiles(Py_ssize_t n) noexcept nogil:
    return (n + CDSK_TILE - 1) // CDSK_TILE


# Rows of tiles that are combined with a column of tiles while its points are cached.
cdef enum:
    MAX_TILE_ROWS = 4

cdef inline Py_ssize_t tile_rows(Py_ssize_t d) noexcept nogil:
    """Return MAX_TILE_ROWS, or fewer whose points fit 1 MiB of the level-2 cache."""
    return max(1, min(MAX_TILE_ROWS, 2**17 // (CDSK_TILE * d)))


cdef inline void pack_tile(
    const floating* X,            # (n, d) in
    const double* center,         # (d,) in, or NULL
    Py_ssize_t n, Py_ssize_t d, Py_ssize_t tile,
    double* packed,               # (TILE / GROUP, d, GROUP) out
) noexcept nogil:
    cdef Py_ssize_t group, i, k, lane
    for group in range(CDSK_TILE // CDSK_GROUP):
        i = tile * CDSK_TILE + group * CDSK_GROUP
        for k in range(d):
            for lane in range(CDSK_GROUP):
                packed[lane] = (
                    0.0 if i + lane >= n
                    else X[(i + lane) * d + k] if center == NULL
                    else X[(i + lane) * d + k] - center[k]
                )
            packed += CDSK_GROUP
