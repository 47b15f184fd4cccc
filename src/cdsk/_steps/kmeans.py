# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's k-means on the calling thread.

It meets n x c numbers here, a millisecond of work per pass, and waits for all its
threads at the end of each. Where processors are shared such a wait costs a slice of the
scheduler: measured, 500 points with four other busy processes on two processors, 2 s
for ten starts in place of 40 ms. On idle ones a second thread saves next to nothing.
Limits of OpenMP by threadpoolctl are no way out: they stay with the thread that set
them first.
"""

from sklearn import cluster


class KMeans(cluster.KMeans):
    """``sklearn.cluster.KMeans`` on one thread, whatever OpenMP offers."""

    @property
    def _n_threads(self):
        return 1

    @_n_threads.setter
    def _n_threads(self, value):
        # fit() sets it to all threads. Should that name change, so do the threads used
        # and nothing else.
        pass
