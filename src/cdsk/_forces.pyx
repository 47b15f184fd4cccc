# SPDX-License-Identifier: BSD-3-Clause
"""Attraction and repulsion in the layout of a neighbor graph (tests/test_layout.py).

Points y_i, a few coordinates each, are moved so that the similarity
q_ij = 1 / (1 + |y_i - y_j|^2) is large for neighbors and small for others. In an epoch
the edge (i, j) acts with the frequency r_ij <= 1, evenly over the epochs. If it does,
it pulls both ends, and each end is pushed away from m random points. So the expected
move of point i, all others fixed, is minus the gradient of its loss

    L_i = 2 sum_j r_ij log(1 + s_ij) + m d_i / n sum_k f(s_ik),
    s_ij = |y_i - y_j|^2,  d_i = sum_j r_ij,  f(s) = log((1 + s) / (e + s)) / (1 - e),

times the length of a step. This is the cross-entropy of UMAP (McInnes, Healy & Melville
2018, with a = b = 1) as it is sampled there, in expectation (Damrich & Hamprecht, On
UMAP's true loss function, 2021). The small e bounds the force between near points, so
that no move has to be clipped, which would depend on the axes.

A point moves edge by edge: the forces of all edges from one place add up to moves that
overshoot (the loss of 1797 images of digits in 10-D is then 9.3 per point instead of
6.9). All points move at once, from where the others were before the epoch, and random
numbers are hashes of (seed, epoch, point, edge): the layout does not depend on the
number of threads. Coordinates are float32: a move is far longer than their rounding.
"""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from cdsk._signals cimport check_signals, gather_work, work_interval
from cdsk._simd cimport (
    CDSK_LAYOUT_WIDTH,
    CDSK_MAX_NEGATIVES,
    CDSK_SOFTENING,
    cdsk_epoch,
    cdsk_simd,
    cdsk_simd_select,
)
from cdsk._threads cimport useful_threads

cdef const cdsk_simd* simd = cdsk_simd_select()

WIDTH = CDSK_LAYOUT_WIDTH
SOFTENING = float(CDSK_SOFTENING)

# Points per task of a thread: enough to amortize its start, and few enough that all
# threads get some, as rows of a graph differ in length.
cdef Py_ssize_t TASK = 64


cdef class Forces:
    """The edges of a graph of n points, and how often each acts.

    Frequencies and phases are in units of 2^-32, those of (i, j) and (j, i) equal. The
    order of the points in memory does not matter: random numbers belong to ``ids``, a
    permutation of 0 ... n - 1, in whose order the entries of a row have to be.
    """

    cdef const int64_t[::1] starts
    cdef const int32_t[::1] neighbors
    cdef const uint32_t[::1] rates
    cdef const uint32_t[::1] phases
    cdef const int32_t[::1] ids
    cdef const int32_t[::1] points
    cdef uint64_t seed
    cdef int n_negatives
    # of an epoch, all points together
    cdef double work

    def __init__(
        self,
        const int64_t[::1] starts,      # (n + 1,) in, CSR
        const int32_t[::1] neighbors,   # (n_entries,) in
        const uint32_t[::1] rates,      # (n_entries,) in
        const uint32_t[::1] phases,     # (n_entries,) in
        const int32_t[::1] ids,         # (n,) in
        *,
        int n_negatives,
        uint64_t seed,
    ):
        if not 0 <= n_negatives <= CDSK_MAX_NEGATIVES:
            raise ValueError(
                f"n_negatives must be between 0 and {CDSK_MAX_NEGATIVES}; "
                f"got {n_negatives}."
            )
        points = np.empty(len(ids), dtype=np.int32)
        points[np.asarray(ids)] = np.arange(len(ids), dtype=np.int32)
        self.starts, self.neighbors = starts, neighbors
        self.rates, self.phases = rates, phases
        self.ids, self.points = ids, points
        self.n_negatives, self.seed = n_negatives, seed
        n_acting = float(np.sum(rates, dtype=np.float64)) / 2.0**32
        # an entry is read; if it acts, positions are read at random
        self.work = len(ids) + len(rates) + gather_work((1 + n_negatives) * n_acting)

    def move(
        self,
        const float[:, ::1] positions,  # (n, WIDTH) in, zero beyond the coordinates
        float[:, ::1] moved,            # (n, WIDTH) out
        uint32_t epoch,
        float step,
        int n_threads,
    ):
        """Move all points once."""
        cdef Py_ssize_t n = positions.shape[0]
        cdef Py_ssize_t n_tasks = (n + TASK - 1) // TASK
        cdef Py_ssize_t task, begin, end, tasks_at_once
        cdef double work = self.work / max(n_tasks, 1)
        cdef cdsk_epoch state
        if n == 0 or self.rates.shape[0] == 0:
            moved[:] = positions
            return
        state.n = n
        state.starts = &self.starts[0]
        state.neighbors = &self.neighbors[0]
        state.rates = &self.rates[0]
        state.phases = &self.phases[0]
        state.ids = &self.ids[0]
        state.points = &self.points[0]
        state.positions = &positions[0, 0]
        state.seed = self.seed
        state.epoch = epoch
        state.n_negatives = self.n_negatives
        state.step = step
        tasks_at_once = max(n_threads, <Py_ssize_t> min(work_interval() / work, 1e9))
        for begin in range(0, n_tasks, tasks_at_once):
            end = min(begin + tasks_at_once, n_tasks)
            # threads that wait for each other at the end of every epoch cost more than
            # they save if processors are shared: one for each 8 ms of work
            for task in prange(
                begin, end, nogil=True, schedule="dynamic",
                num_threads=useful_threads(
                    min(n_threads, end - begin), 0.5 * (end - begin) * work
                ),
            ):
                simd.move_points(
                    &state, task * TASK, min((task + 1) * TASK, n), &moved[0, 0]
                )
            check_signals((end - begin) * work)
