# SPDX-License-Identifier: BSD-3-Clause
"""Kernels by name, from ``sklearn.metrics.pairwise``, and callables with parameters.

The theory asks for values in [0, a]. Kernels with values in [-1, 1] whatever the data
(cosine, sigmoid) are mapped to [0, 1] by (k + 1) / 2, for training and new points
alike: the paper's remark on the range of a similarity. Adding a constant keeps a kernel
semi-definite. A range that depends on the data would differ between fit and predict, so
negative values of any other kernel are refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.metrics.pairwise import KERNEL_PARAMS, pairwise_kernels

from cdsk._validation import check_number

NAMES = ("chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "sigmoid")

_BETWEEN_MINUS_ONE_AND_ONE = ("cosine", "sigmoid")

# Smallest value of a parameter. A negative gamma makes far points similar.
_LEAST = {"gamma": 0, "degree": 1}

Kernel = Callable[..., ArrayLike]


@dataclass(frozen=True)
class PairwiseKernel:
    """Matrix of kernel values between the rows of A and those of B."""

    kernel: str | Kernel
    parameters: Mapping[str, Any]

    @property
    def remedy(self) -> str:
        """What makes its values larger."""
        if self.kernel in ("laplacian", "chi2"):
            return "a smaller gamma"
        return "a kernel with larger values"

    def __call__(self, A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
        """Values of the kernel, refused unless there is one per pair of points."""
        if callable(self.kernel):
            returned = self.kernel(A, B, **self.parameters)
            if sparse.issparse(returned):
                raise ValueError(
                    "kernel(A, B) must return a dense array; got a sparse one, which "
                    "its method toarray makes dense."
                )
            values = np.asarray(returned)
        else:
            values = pairwise_kernels(A, B, metric=self.kernel, **self.parameters)
        if values.shape != (len(A), len(B)):
            raise ValueError(
                "kernel(A, B) must return a matrix with a value for every pair of "
                f"points, shape ({len(A)}, {len(B)}); got shape {values.shape}."
            )
        if self.kernel in _BETWEEN_MINUS_ONE_AND_ONE:
            # rounding must not leave [0, 1]
            values = np.clip(0.5 * (values + 1.0), 0.0, 1.0)
        return values


def check_kernel_params(kernel, parameters):
    """Refuse parameters that the kernel does not have, and values they cannot have."""
    if parameters is None:
        return
    if not isinstance(parameters, Mapping):
        raise ValueError(f"kernel_params must be a dict or None; got {parameters!r}.")
    if callable(kernel):
        return
    known = KERNEL_PARAMS[kernel] if kernel in NAMES else ()
    for name in parameters:
        if name not in known:
            expected = ", ".join(map(repr, sorted(known))) or "none"
            raise ValueError(
                f"kernel_params of kernel={kernel!r} may be {expected}; got {name!r}."
            )
    for name, value in parameters.items():
        # gamma=None is scikit-learn's default, 1 / n_features
        if not (name == "gamma" and value is None):
            check_number(value, f"kernel_params[{name!r}]", at_least=_LEAST.get(name))
