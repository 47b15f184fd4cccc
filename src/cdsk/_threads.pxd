# SPDX-License-Identifier: BSD-3-Clause
"""The only gate to OpenMP; without OpenMP every loop runs on one thread."""

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define CDSK_OPENMP 1
    #define cdsk_omp_get_max_threads omp_get_max_threads
    #else
    #define CDSK_OPENMP 0
    #define cdsk_omp_get_max_threads() 1
    #endif
    """
    const int CDSK_OPENMP
    int cdsk_omp_get_max_threads() noexcept nogil
