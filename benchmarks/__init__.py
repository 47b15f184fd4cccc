"""Benchmarks, run from the top folder of the repository.

asv
    Single stages over the commits: ``make asv``, ``make bench-check``.
peers
    Comparison with scikit-learn and libsvm: ``make bench``.
large
    Large fits, each in its own process: ``make bench-large``.
dask
    Fits on dask workers: ``make bench-dask``.
paper
    The paper's tables: ``make bench-paper``.
studies
    Studies behind the defaults: ``python -m benchmarks.studies.defaults DATA``.
"""
