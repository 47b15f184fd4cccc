"""Stages of a fit called by themselves."""

from cdsk._candidates import make_candidates
from cdsk._cdsk import CDSK
from cdsk._cdsk import make_context as context_of


def make_context(*, n_threads=1, seed=0, **params):
    """What the stages share, by parameters of ``CDSK``."""
    return context_of(CDSK(random_state=seed, n_threads=n_threads, **params))


def candidates_of(X, *, multiplicity=None, n_clusters=1, n_features=1, **params):
    """Candidate kernels of the points X by parameters of ``CDSK``."""
    return make_candidates(
        X,
        make_context(**params),
        n_clusters=n_clusters,
        n_features=n_features,
        multiplicity=multiplicity,
    )
