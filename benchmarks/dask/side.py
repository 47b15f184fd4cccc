# SPDX-License-Identifier: BSD-3-Clause
"""One method on so many rows and workers, measured in a process of its own, to JSON."""

import json
import sys
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from distributed import Client, LocalCluster
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score

import cdsk
from benchmarks.dask.sets import ATOM, CLUSTERS, lazily
from benchmarks.process import figures_of
from cdsk.dask import CDSK, _estimator

# rows of the sample that is clustered by itself, and of a block at most
SAMPLE, BLOCK = 5000, 100_000


def in_process(method, n, n_workers, seed, timeout):
    """Figures of a method, or why there are none."""
    found = figures_of(__spec__.name, [method, n, n_workers, seed], timeout)
    if "timeout" in found:
        return {"failed": f"not done in {timeout:g} s"}
    return found


def measure(method, n, n_workers, seed):
    """The same by a cluster of this process."""
    block = max(ATOM, min(BLOCK, n // (4 * n_workers) // ATOM * ATOM))
    X, y = lazily(n, block, seed)
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=60,
        ) as cluster,
        Client(cluster) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        # workers import what they need
        METHODS["cdsk.dask"](*lazily(ATOM, ATOM // n_workers // 10, 0)[:1], 0)
        before = _sent(client)
        figures, labels = METHODS[method](X, seed)
        moved = _sent(client) - before
        peak = max(client.run(_peak).values())
        truth = y.compute()
    counted = truth < CLUSTERS
    if np.isnan(labels).any():
        return {"failed": "labels are NaN"}
    return figures | {
        "ARI": adjusted_rand_score(truth[counted], labels[counted]),
        "moved": moved,
        "peak": peak,
    }


def _sent(client):
    """Bytes that workers have sent."""
    sent = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return sum(sent.values())


def _peak():
    """Bytes that a process held at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return 1024 * int(peak)


def landmarks(X, seed):
    """``cdsk.dask.CDSK``, every pass by itself."""
    figures = {}

    class Timed(_estimator.DaskPasses):
        def sample(self, *args):
            return clocked(figures, "sample", super().sample, *args)

        def fit_landmarks(self, *args):
            return clocked(figures, "landmarks", super().fit_landmarks, *args)

        def gram(self, *args):
            return clocked(figures, "similarities", super().gram, *args)

    model = CDSK(CLUSTERS, random_state=seed, n_threads=1)
    with mock.patch.object(_estimator, "DaskPasses", Timed):
        clocked(figures, "fit", model.fit, X)
    return figures, clocked(figures, "predict", model.labels_.compute)


def sample_and_predict(X, seed):
    """``cdsk.CDSK`` on the first rows, as all are in a random order."""
    model, figures = cdsk.CDSK(CLUSTERS, random_state=seed, n_threads=1), {}
    clocked(figures, "fit", lambda: model.fit(X[:SAMPLE].compute()))
    labels = X.map_blocks(model.predict, drop_axis=1, dtype=int)
    return figures, clocked(figures, "predict", labels.compute)


def mini_batches(X, seed):
    """Mini-batch k-means of scikit-learn, all rows in this process."""
    model, figures = MiniBatchKMeans(CLUSTERS, random_state=seed, n_init=3), {}
    clocked(figures, "fit", lambda: model.fit(X.compute()))
    return figures, clocked(figures, "predict", lambda: model.predict(X.compute()))


def of_dask_ml(X, seed):
    """Nyström on a uniform sample; gamma is that of a cluster of width 1.5."""
    from dask_ml.cluster import SpectralClustering

    model = SpectralClustering(CLUSTERS, random_state=seed, n_components=500, gamma=0.2)
    figures = {}
    clocked(figures, "fit", model.fit, X.persist())
    return figures, clocked(figures, "predict", lambda: np.asarray(model.labels_))


METHODS = {
    "cdsk.dask": landmarks,
    "CDSK on 5000 rows": sample_and_predict,
    "mini-batch k-means": mini_batches,
    "dask-ml SpectralClustering": of_dask_ml,
}


def clocked(figures, name, function, *args):
    """A result; its seconds, and those of all processors, are noted."""
    clock, processors = time.perf_counter(), _processors()
    result = function(*args)
    figures[name] = time.perf_counter() - clock
    figures[f"{name}, processor"] = _processors() - processors
    return result


def _processors():
    times = Client.current().run(time.process_time)
    return time.process_time() + sum(times.values())


if __name__ == "__main__":
    print(json.dumps(measure(*json.loads(sys.argv[1]))))
