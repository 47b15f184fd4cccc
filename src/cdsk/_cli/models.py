# SPDX-License-Identifier: BSD-3-Clause
"""Fitted models as files of skops, which run no code when they are read.

What a file holds is built from types that skops trusts by itself, of NumPy, SciPy and
scikit-learn, and from those of ours that are listed here. Another type, a function say,
is refused by its name before anything is built.
"""

from zipfile import BadZipFile

from cdsk._cli.console import UsageError

# All that a fitted CDSK or BlockCDSK holds of ours; a test compares them.
TRUSTED = (
    "cdsk._blocks.candidates.LandmarkGraph",
    "cdsk._blocks.candidates.LandmarkVotes",
    "cdsk._blocks.estimator.BlockCDSK",
    "cdsk._blocks.estimator.LandmarkCDSK",
    "cdsk._blocks.judge.Judge",
    "cdsk._blocks.landmarks.Landmarks",
    "cdsk._choices.candidates.FullGaussian",
    "cdsk._choices.candidates.LowRankGaussian",
    "cdsk._choices.candidates.OtherKernel",
    "cdsk._choices.candidates.Precomputed",
    "cdsk._choices.candidates.TruncatedGaussian",
    "cdsk._choices.lam.LambdaChoice",
    "cdsk._choices.n_clusters.CountChoice",
    "cdsk._choices.partition.Choice",
    "cdsk._choices.representation.Representation",
    "cdsk._estimator.CDSK",
    "cdsk._explain.noise.NoiseRule",
    "cdsk._explain.probabilities.LeftOutVotes",
    "cdsk._kernels.graph.GivenNeighbours",
    "cdsk._kernels.lowrank.Approximation",
    "cdsk._kernels.neighbours.Neighbours",
    "cdsk._kernels.neighbours.PointSearch",
    "cdsk._kernels.pairwise.PairwiseKernel",
    "cdsk._kernels.sparse.NeighbourGraph",
    "cdsk._kernels.votes.GaussianVotes",
    "cdsk._kernels.votes.GraphVotes",
    "cdsk._kernels.votes.KernelVotes",
    "cdsk._kernels.votes.NeighbourVotes",
    "cdsk._points.Points",
)


def require_skops():
    """The module ``skops.io``; refuse in words if it is not installed."""
    try:
        from skops import io
    except ImportError:
        raise ImportError(
            "Models are saved by skops, which is not installed: pip install cdsk[skops]"
        ) from None
    return io


def save_model(model, path):
    """Write a fitted model to a file."""
    require_skops().dump(model, path)


def load_model(path):
    """Read a fitted model; refuse files that hold anything else."""
    io = require_skops()
    try:
        unknown = set(io.get_untrusted_types(file=path)) - set(TRUSTED)
        if unknown:
            raise UsageError(
                f"{path}: expected a model of cdsk alone; got what is not trusted: "
                f"{', '.join(sorted(unknown))}."
            )
        model = io.load(path, trusted=TRUSTED)
    except BadZipFile:
        raise UsageError(
            f"{path}: expected a model of cdsk cluster --save; got another file."
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}.") from None
    except (LookupError, TypeError, ValueError, AttributeError, ImportError) as error:
        raise UsageError(
            f"{path}: expected a model of cdsk cluster --save; got one that is damaged "
            f"or of another version ({error})."
        ) from None
    kind = type(model)
    of_ours = kind.__module__.partition(".")[0] == "cdsk" and hasattr(kind, "predict")
    if not of_ours or not hasattr(model, "labels_"):
        raise UsageError(
            f"{path}: expected a fitted model of cdsk; got a {kind.__name__}."
        )
    return model
