# SPDX-License-Identifier: BSD-3-Clause
"""The QP of the weight step, with rows computed on demand or stored."""

import time

import numpy as np

from cdsk import solve_qp

from . import data, quality


def make_problem(name, n_threads):
    X, _ = data.digits() if name == "digits" else data.blobs(int(name))
    return data.weight_problem(data.kernel(X, n_threads))


class WeightStep:
    """``problem`` is "digits", or a number of points in overlapping blobs."""

    timeout = 600  # on a busy machine
    params = (["1000", "4000", "digits"], [1e-4, 1e-6], [1, 2])
    param_names = ("problem", "tol", "n_threads")

    def setup(self, name, tol, n_threads):
        self.problem = make_problem(name, n_threads)

    def run(self, tol):
        return self.problem.solve(data.uniform(self.problem.kernel.n), tol)

    def time_solve(self, name, tol, n_threads):
        self.run(tol)

    def peakmem_solve(self, name, tol, n_threads):
        self.run(tol)

    def track_steps(self, name, tol, n_threads):
        return self.run(tol).n_iter

    def track_gap(self, name, tol, n_threads):
        return self.run(tol).gap


class SparseWeightStep:
    """Weight step on a neighbor graph; the cost of a step should not depend on n."""

    timeout = 600
    params = ([10_000, 100_000, 1_000_000],)
    param_names = ("n",)

    def setup(self, n):
        self.problem = data.sparse_weight_problem(n)

    def run(self):
        return self.problem.solve(data.uniform(self.problem.kernel.n), 1e-4)

    def time_solve(self, n):
        self.run()

    def track_microseconds_per_step(self, n):
        began = time.process_time()
        steps = self.run().n_iter
        return 1e6 * (time.process_time() - began) / steps

    def track_gap(self, n):
        return self.run().gap


class StoredMatrix:
    params = ([1000, 2000],)
    param_names = ("n",)

    def setup(self, n):
        problem = make_problem(str(n), 1)
        vectors = problem.vectors
        self.Q = problem.penalty * problem.kernel.K * (vectors.T @ vectors)
        self.q, self.upper = problem.q, 1.0 / problem.penalty
        self.tol = 1e-4 * float(np.abs(self.q).max())

    def run(self):
        return solve_qp(self.Q, self.q, self.upper, tol=self.tol)

    def time_solve(self, n):
        self.run()

    def track_gap(self, n):
        return quality.relative_gap(self.Q, self.q, self.run().x, self.upper)
