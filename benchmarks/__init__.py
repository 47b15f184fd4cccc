"""Three rooms, each run from the top folder of the repository.

asv
    Every stage over the commits: ``make asv``, ``make bench-check``.
peers
    cdsk beside scikit-learn and libsvm: ``make bench``.
studies
    What made the tables of docs: ``python -m benchmarks.studies.defaults DATA``.
"""
