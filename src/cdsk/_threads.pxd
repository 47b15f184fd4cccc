# SPDX-License-Identifier: BSD-3-Clause
"""The only module that uses OpenMP; without it every loop runs on one thread."""

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


cdef inline int useful_threads(int n_threads, double work) noexcept nogil:
    """Return n_threads, or fewer if there is too little work for them.

    `work` counts multiplications; 4e6 take about a millisecond. A parallel region costs
    some 10 microseconds, but several milliseconds where processors are shared.
    """
    return min(n_threads, 1 + <int> min(work / 4e6, 1e6))
