# SPDX-License-Identifier: BSD-3-Clause
"""Measure one method in its own process, and print the results as JSON."""

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
from benchmarks.dask.sets import BATCH, CLUSTERS, make_dask_arrays
from benchmarks.process import run_module
from cdsk.dask import CDSK, _estimator

# number of rows that ``fit_sample`` fits, and largest number of rows of a block
SAMPLE, BLOCK = 5000, 100_000


def measure_in_subprocess(method, n, n_workers, seed, timeout):
    """Return the results of a method, or why there are none."""
    found = run_module(__spec__.name, [method, n, n_workers, seed], timeout)
    if "timeout" in found:
        return {"failed": f"not finished in {timeout:g} s"}
    return found


def measure(method, n, n_workers, seed):
    """Return the results of a method on a local cluster of this process."""
    block = max(BATCH, min(BLOCK, n // (4 * n_workers) // BATCH * BATCH))
    X, y = make_dask_arrays(n, block, seed)
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
        # a first fit, in which workers import their modules
        METHODS["cdsk.dask"](
            *make_dask_arrays(BATCH, BATCH // n_workers // 10, 0)[:1], 0
        )
        before = _count_sent_bytes(client)
        results, labels = METHODS[method](X, seed)
        moved = _count_sent_bytes(client) - before
        peak = max(client.run(_peak_memory).values())
        truth = y.compute()
    counted = truth < CLUSTERS
    if np.isnan(labels).any():
        return {"failed": "labels are NaN"}
    return results | {
        "ARI": adjusted_rand_score(truth[counted], labels[counted]),
        "moved": moved,
        "peak": peak,
    }


def _count_sent_bytes(client):
    """Return the number of bytes that workers have sent."""
    sent = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return sum(sent.values())


def _peak_memory():
    """Return the peak memory of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return 1024 * int(peak)


def fit_landmarks(X, seed):
    """Fit ``cdsk.dask.CDSK``, and record the time of every pass."""
    results = {}

    class Timed(_estimator.DaskPasses):
        def sample(self, *args):
            return record_time(results, "sample", super().sample, *args)

        def fit_landmarks(self, *args):
            return record_time(results, "landmarks", super().fit_landmarks, *args)

        def gram(self, *args):
            return record_time(results, "similarities", super().gram, *args)

    model = CDSK(CLUSTERS, random_state=seed, n_threads=1)
    with mock.patch.object(_estimator, "DaskPasses", Timed):
        record_time(results, "fit", model.fit, X)
    return results, record_time(results, "predict", model.labels_.compute)


def fit_sample(X, seed):
    """Fit ``cdsk.CDSK`` to the first rows (rows are in random order)."""
    model, results = cdsk.CDSK(CLUSTERS, random_state=seed, n_threads=1), {}
    record_time(results, "fit", lambda: model.fit(X[:SAMPLE].compute()))
    labels = X.map_blocks(model.predict, drop_axis=1, dtype=int)
    return results, record_time(results, "predict", labels.compute)


def fit_mini_batch_kmeans(X, seed):
    """Fit scikit-learn's mini-batch k-means to all rows in this process."""
    model, results = MiniBatchKMeans(CLUSTERS, random_state=seed, n_init=3), {}
    record_time(results, "fit", lambda: model.fit(X.compute()))
    return results, record_time(results, "predict", lambda: model.predict(X.compute()))


def fit_dask_ml(X, seed):
    """Fit dask-ml's spectral clustering, with gamma for a cluster of width 1.5."""
    from dask_ml.cluster import SpectralClustering

    model = SpectralClustering(CLUSTERS, random_state=seed, n_components=500, gamma=0.2)
    results = {}
    record_time(results, "fit", model.fit, X.persist())
    return results, record_time(results, "predict", lambda: np.asarray(model.labels_))


METHODS = {
    "cdsk.dask": fit_landmarks,
    "CDSK on 5000 rows": fit_sample,
    "mini-batch k-means": fit_mini_batch_kmeans,
    "dask-ml SpectralClustering": fit_dask_ml,
}


def record_time(results, name, function, *args):
    """Return the result of a call, and record its elapsed and processor time."""
    clock, processors = time.perf_counter(), _processor_time()
    result = function(*args)
    results[name] = time.perf_counter() - clock
    results[f"{name}, processor"] = _processor_time() - processors
    return result


def _processor_time():
    times = Client.current().run(time.process_time)
    return time.process_time() + sum(times.values())


if __name__ == "__main__":
    print(json.dumps(measure(*json.loads(sys.argv[1]))))
