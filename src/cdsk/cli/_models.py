# SPDX-License-Identifier: BSD-3-Clause
"""Fitted models as skops files, which run no code when they are loaded.

A file may contain the default types of skops, of NumPy, SciPy and scikit-learn, and the
types of cdsk listed here. A file with any other type, for example a function, is
rejected before an object is created.
"""

from zipfile import BadZipFile

from cdsk._version import __version__
from cdsk.cli._console import UsageError

# All types of cdsk in a fitted CDSK or BlockCDSK; a test compares them.
TRUSTED = (
    "cdsk.blocks._landmark_kernels.LandmarkGraph",
    "cdsk.blocks._landmark_kernels.LandmarkVotes",
    "cdsk.blocks._drift.Drift",
    "cdsk.blocks._estimator.BlockCDSK",
    "cdsk.blocks._gram.Gram",
    "cdsk.blocks._predictor.LandmarkPredictor",
    "cdsk.blocks._landmarks.Landmarks",
    "cdsk._candidates.Gaussian",
    "cdsk._candidates.OtherKernel",
    "cdsk._lam_choice.LambdaChoice",
    "cdsk._count_choice.CountChoice",
    "cdsk._partition_choice.Choice",
    "cdsk._partition_choice.WeightChoice",
    "cdsk._preprocessing.Representation",
    "cdsk._columns.Columns",
    "cdsk._coding.Coding",
    "cdsk._filling.Filling",
    "cdsk._missing.MissingCells",
    "cdsk._cdsk.CDSK",
    "cdsk._sizes.SizeChange",
    "cdsk._layers.Layers",
    "cdsk._result.Predictor",
    "cdsk._voting.NoiseRule",
    "cdsk._voting.LeaveOneOutVotes",
    "cdsk._neighbors.PrecomputedNeighbors",
    "cdsk._operators.low_rank.Approximation",
    "cdsk._neighbors.Neighbors",
    "cdsk._neighbors.NeighborIndex",
    "cdsk._pairwise.PairwiseKernel",
    "cdsk._operators.sparse.NeighborGraph",
    "cdsk._voting.GaussianVotes",
    "cdsk._voting.KernelVotes",
    "cdsk._voting.NeighborVotes",
    "cdsk._preprocessing.Points",
)


def import_skops():
    """Return the module ``skops.io``, or raise an error with a hint."""
    try:
        from skops import io
    except ImportError:
        raise ImportError(
            "Saving and loading models requires skops, which is not installed: pip "
            "install cdsk[skops]"
        ) from None
    return io


def save_model(model, path):
    """Write a fitted model to a file."""
    import_skops().dump(model, path)


def load_model(path):
    """Return the fitted model of a file; raise an error for any other content."""
    io = import_skops()
    try:
        _check_types(path, set(io.get_untrusted_types(file=path)))
        model = io.load(path, trusted=TRUSTED)
    except BadZipFile:
        raise UsageError(
            f"{path}: expected a model of cdsk cluster --save; got another file. "
            "Pickle and joblib files are never loaded."
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}.") from None
    except (LookupError, TypeError, ValueError, AttributeError, ImportError) as error:
        raise UsageError(
            f"{path}: expected a model of cdsk cluster --save; got a file that is "
            f"damaged or was written by another version ({error})."
        ) from None
    model_type = type(model)
    is_cdsk = model_type.__module__.partition(".")[0] == "cdsk"
    is_estimator = is_cdsk and hasattr(model_type, "predict")
    if not is_estimator or not hasattr(model, "labels_"):
        raise UsageError(
            f"{path}: expected a fitted model of cdsk; got {model_type.__name__}."
        )
    return model


def _check_types(path, types):
    """Raise an error if a file contains types that are not trusted."""
    unknown = sorted(types - set(TRUSTED))
    foreign = [name for name in unknown if not name.startswith("cdsk.")]
    if foreign:
        raise UsageError(
            f"{path}: expected only types of cdsk; got untrusted types "
            f"{', '.join(foreign)}."
        )
    if unknown:
        raise UsageError(
            f"{path}: the model was saved by another version of cdsk (this is "
            f"{__version__}) with the unknown types {', '.join(unknown)}. Fit and save "
            "it again."
        )
