# SPDX-License-Identifier: BSD-3-Clause
"""Compiled operations on a symmetric matrix K with a negative part K- = F'F, F (r, n).

    NegativeRows     rows of K-, made of F or stored
    AbsoluteRows     rows of |K| = K + 2 K-, made on demand for the QP solver
    clipped_pairs    the pairs i < j with negative similarity, and minus its value:
                     S_ij = 2 (alpha_i + alpha_j) K_ij - 2 lam alpha_i alpha_j |K|_ij
    components       connected components of the graph of max(S, 0)

K is seen only through a RowSource. F arrives twice: as F and as its transpose, so that
a row of K- is a combination of the rows of F by a contiguous row of coefficients. Such
a row costs O(n r), so each pass over all pairs costs O(n^2 r), unless K- is stored. One
thread: both passes run once per spectral step, which makes tens of passes over K.
"""
import numpy as np

from cpython.exc cimport PyErr_CheckSignals

from cdsk._rows cimport RowSource, row_function
from cdsk._simd cimport cdsk_simd, cdsk_simd_select

cdef const cdsk_simd* simd = cdsk_simd_select()


cdef inline double similarity(
    double k, double negative, double alpha_i, double alpha_j, double lam
) noexcept nogil:
    """S_ij from K_ij and the entry of K-."""
    cdef double both = lam * (alpha_i * alpha_j)
    return 2.0 * ((alpha_i + alpha_j - both) * k - 2.0 * both * negative)


cdef struct negative_matrix:
    const double* stored     # (n, n) or NULL
    const double* factor     # (r, n)
    const double* transpose  # (n, r)
    double* scratch          # (n,)
    Py_ssize_t n, r


cdef inline const double* negative_row(
    const negative_matrix* m, Py_ssize_t i, Py_ssize_t first
) noexcept nogil:
    """Row i of K-, of which entries from the first one on are valid."""
    if m.stored != NULL:
        return m.stored + i * m.n
    simd.combine(
        m.transpose + i * m.r, m.factor, m.r, 1, m.n, first, m.n, m.scratch
    )
    return m.scratch


cdef class NegativeRows:
    """Rows of K-: of a factor F (r, n) and its transpose, or of a stored matrix."""

    cdef negative_matrix matrix
    cdef const double[:, ::1] first
    cdef const double[:, ::1] second
    cdef double[::1] scratch
    cdef readonly object diagonal     # (n,)

    def __cinit__(
        self,
        const double[:, ::1] first,           # (r, n) or the stored (n, n), r > 0
        const double[:, ::1] second = None,   # (n, r); None: the first is stored
    ):
        self.first = first
        self.second = second
        self.matrix.n = first.shape[1]
        self.matrix.r = first.shape[0]
        self.matrix.stored = NULL
        if second is None:
            self.matrix.stored = &first[0, 0]
            self.diagonal = np.diagonal(first).copy()
        else:
            self.scratch = np.empty(first.shape[1])
            self.matrix.factor = &first[0, 0]
            self.matrix.transpose = &second[0, 0]
            self.matrix.scratch = &self.scratch[0]
            self.diagonal = np.einsum("rn,rn->n", first, first)


cdef struct absolute_matrix:
    row_function row         # of K
    void* user
    const negative_matrix* negative
    Py_ssize_t n


cdef const double* _absolute_row(
    void* user, Py_ssize_t i, double* scratch
) noexcept nogil:
    cdef absolute_matrix* m = <absolute_matrix*> user
    cdef const double* k = m.row(m.user, i, scratch)
    cdef const double* negative = negative_row(m.negative, i, 0)
    cdef Py_ssize_t j
    for j in range(m.n):
        scratch[j] = k[j] + 2.0 * negative[j]
    return scratch


cdef class AbsoluteRows(RowSource):
    """Rows of |K| = K + 2 K-, from rows of both."""

    cdef absolute_matrix matrix
    cdef RowSource rows
    cdef NegativeRows negative

    def __cinit__(self, RowSource rows, NegativeRows negative):
        self.rows = rows
        self.negative = negative
        self.n = self.matrix.n = rows.n
        self.matrix.row = rows.row
        self.matrix.user = rows.user
        self.matrix.negative = &negative.matrix
        self.diagonal = rows.diagonal + 2.0 * negative.diagonal
        self.row = _absolute_row
        self.user = &self.matrix


def clipped_pairs(
    RowSource rows,                   # of K
    NegativeRows negative_rows,       # of K-
    const double[::1] alpha,          # (n,) in
    double lam,                       # the paper's lambda
    const double[::1] degrees,        # (n,) in
    double negligible,
):
    """Arrays i, j, -S_ij of the pairs i < j with S_ij < 0, negligible ones left out.

    Left out is what is not below -negligible * min(degree_i, degree_j). Only pairs of
    positive weights can be among them: elsewhere S_ij is a multiple of K_ij.
    """
    cdef Py_ssize_t n = rows.n
    cdef double[::1] scratch = np.empty(n)
    cdef double[::1] values = np.empty(n)
    cdef int[::1] places = np.empty(n, dtype=np.intc)
    cdef const double* k
    cdef const double* negative
    cdef Py_ssize_t i, j, count
    cdef double value
    first, second, excess = [], [], []
    for i in range(n):
        if not alpha[i] > 0.0:
            continue
        count = 0
        with nogil:
            k = rows.row(rows.user, i, &scratch[0])
            negative = negative_row(&negative_rows.matrix, i, i + 1)
            for j in range(i + 1, n):
                if alpha[j] > 0.0:
                    value = similarity(k[j], negative[j], alpha[i], alpha[j], lam)
                    if value < -negligible * min(degrees[i], degrees[j]):
                        places[count] = <int> j
                        values[count] = -value
                        count += 1
        if count:
            first.append(np.full(count, i, dtype=np.intc))
            second.append(np.array(places[:count]))
            excess.append(np.array(values[:count]))
        PyErr_CheckSignals()
    if not first:
        return np.empty(0, np.intc), np.empty(0, np.intc), np.empty(0)
    return np.concatenate(first), np.concatenate(second), np.concatenate(excess)


def components(
    RowSource rows,                   # of K
    NegativeRows negative_rows,       # of K-
    const double[::1] alpha,          # (n,) in
    double lam,                       # the paper's lambda
    const double[::1] degrees,        # (n,) in, degrees of max(S, 0)
    double negligible,
):
    """Number and labels of the components of max(S, 0), negligible edges left out.

    Points i and j are joined where S_ij > negligible * min(degree_i, degree_j).
    """
    cdef Py_ssize_t n = rows.n
    cdef Py_ssize_t[::1] label = np.empty(n, dtype=np.intp)
    # found[:n_found] have been reached, found[n_found:] not yet
    cdef Py_ssize_t[::1] found = np.arange(n, dtype=np.intp)
    cdef Py_ssize_t n_found = 0, next_point = 0, count = 0, i, j, place
    cdef double[::1] scratch = np.empty(n)
    cdef const double* k
    cdef const double* negative
    cdef double value
    with nogil:
        while n_found < n:
            label[found[n_found]] = count
            n_found += 1
            while next_point < n_found < n:
                i = found[next_point]
                next_point += 1
                k = rows.row(rows.user, i, &scratch[0])
                negative = negative_row(&negative_rows.matrix, i, 0)
                for place in range(n_found, n):
                    j = found[place]
                    value = similarity(k[j], negative[j], alpha[i], alpha[j], lam)
                    if value > negligible * min(degrees[i], degrees[j]):
                        label[j] = count
                        found[place] = found[n_found]
                        found[n_found] = j
                        n_found += 1
            count += 1
    return count, np.asarray(label)
