# SPDX-License-Identifier: BSD-3-Clause
"""Points as the tiles that the loops of simd.c read; simd.h describes them."""
from cython cimport floating

from cdsk._simd cimport CDSK_GROUP, CDSK_TILE


cdef inline Py_ssize_t n_tiles(Py_ssize_t n) noexcept nogil:
    return (n + CDSK_TILE - 1) // CDSK_TILE


# Rows of tiles that meet a column of tiles in one go while its points are in the cache.
cdef enum:
    MOST_ROWS = 4

cdef inline Py_ssize_t rows_together(Py_ssize_t d) noexcept nogil:
    """MOST_ROWS, fewer if their points fill more than 1 MiB of the level-2 cache."""
    return max(1, min(MOST_ROWS, 2**17 // (CDSK_TILE * d)))


cdef inline void pack_tile(
    const floating* X,            # (n, d) in
    const double* centre,         # (d,) in, or NULL
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
                    else X[(i + lane) * d + k] if centre == NULL
                    else X[(i + lane) * d + k] - centre[k]
                )
            packed += CDSK_GROUP
