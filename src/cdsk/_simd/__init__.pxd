# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of simd.h; the header says what each function does."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "_simd/simd.h" nogil:
    enum:
        CDSK_GROUP
        CDSK_TILE
        CDSK_MAX_COLUMNS
        CDSK_PRODUCT_ROWS
        CDSK_SINGLE_DEPTH
        CDSK_LAYOUT_WIDTH
        CDSK_MAX_NEGATIVES

    const float CDSK_SOFTENING

    ctypedef struct cdsk_epoch:
        Py_ssize_t n
        const int64_t* starts
        const int32_t* neighbors
        const uint32_t* rates
        const uint32_t* phases
        const int32_t* ids
        const int32_t* points
        const float* positions
        uint64_t seed
        uint32_t epoch
        int n_negatives
        float step

    ctypedef struct cdsk_simd:
        const char* name
        void squared_norms(const double* a, Py_ssize_t d, double* out) noexcept nogil
        void gaussian_f64(
            const double* a, const double* b, Py_ssize_t d, const double* wa,
            const double* wb, const double* sa, const double* sb,
            Py_ssize_t na, Py_ssize_t nb,
            double* out, double* mirror, Py_ssize_t stride,
        ) noexcept nogil
        void gaussian_f32(
            const double* a, const double* b, Py_ssize_t d, const double* wa,
            const double* wb, const double* sa, const double* sb,
            Py_ssize_t na, Py_ssize_t nb,
            float* out, float* mirror, Py_ssize_t stride,
        ) noexcept nogil
        void log_votes(
            const double* a, const double* b, Py_ssize_t d,
            const double* wa, const double* wb, const double* sa, const double* sb,
            const double* alpha, Py_ssize_t nb, double* peak, double* total,
        ) noexcept nogil
        void product_f64(
            const double* K, Py_ssize_t first, Py_ssize_t rows, Py_ssize_t n,
            const double* V, Py_ssize_t m, double* out,
        ) noexcept nogil
        void product_f32(
            const float* K, Py_ssize_t first, Py_ssize_t rows, Py_ssize_t n,
            const double* V, Py_ssize_t m, double* out,
        ) noexcept nogil
        void inner(
            const double* A, Py_ssize_t p, const double* B, Py_ssize_t q, Py_ssize_t n,
            Py_ssize_t begin, Py_ssize_t end, double* out,
        ) noexcept nogil
        void combine(
            const double* C, const double* A, Py_ssize_t p, Py_ssize_t q, Py_ssize_t n,
            Py_ssize_t begin, Py_ssize_t end, double* out,
        ) noexcept nogil
        void hadamard_row(
            const double* k, const double* Y, const double* y,
            double scale, Py_ssize_t c, Py_ssize_t n, double* out,
        ) noexcept nogil
        void single_tile(
            const double* a, const double* center, double scale, Py_ssize_t d,
            float* out, double* norms,
        ) noexcept nogil
        Py_ssize_t points_near_box(
            const float* a, Py_ssize_t d, const float* low, const float* high,
            const float* reach, int32_t* rows,
        ) noexcept nogil
        void near_pairs(
            const float* a, const float* b, Py_ssize_t d, const float* shift,
            const float* least, const float* bound_a, const float* bound_b,
            const int32_t* rows, Py_ssize_t n_rows, uint64_t* near,
        ) noexcept nogil
        double squared_distance_f64(
            const double* a, const double* b, Py_ssize_t d
        ) noexcept nogil
        double squared_distance_f32(
            const double* a, const float* b, Py_ssize_t d
        ) noexcept nogil
        double box_distance(
            const double* low_a, const double* high_a,
            const double* low_b, const double* high_b, Py_ssize_t d, double* centers,
        ) noexcept nogil
        Py_ssize_t smo_partner(
            const double* g, const double* can_decrease, const double* diag,
            const double* q, double g_j, double diag_j, double floor, Py_ssize_t n,
        ) noexcept nogil
        Py_ssize_t smo_update(
            double* g, const double* q_j, const double* q_i, double step,
            const double* can_increase, const double* can_decrease, Py_ssize_t n,
            double* low, double* high,
        ) noexcept nogil
        double assign_nearest(
            const double* points, Py_ssize_t n, Py_ssize_t begin, Py_ssize_t end,
            Py_ssize_t d, const double* centers, Py_ssize_t c, const double* weights,
            double* nearest, int64_t* labels,
        ) noexcept nogil
        void move_points(
            const cdsk_epoch* epoch, Py_ssize_t begin, Py_ssize_t end, float* moved
        ) noexcept nogil

    const cdsk_simd* cdsk_simd_select() noexcept
