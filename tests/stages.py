"""Stages of a fit called by themselves."""

import numpy as np

from cdsk import CDSK
from cdsk._candidates import make_candidates
from cdsk._settings import FitContext, Settings
from cdsk._utils import Progress


def candidates_of(
    X, *, n_threads=1, seed=0, multiplicity=None, n_clusters=1, n_features=1, **params
):
    """Candidate kernels of the points X by parameters of ``CDSK``."""
    settings = Settings(**CDSK(**params).get_params(deep=False))
    context = FitContext(np.random.RandomState(seed), n_threads, Progress())
    return make_candidates(
        X,
        settings,
        context,
        n_clusters=n_clusters,
        n_features=n_features,
        multiplicity=multiplicity,
    )
