# SPDX-License-Identifier: BSD-3-Clause
"""The generalization bound of the similarity classifier (theorem similarity-error).

With votes h(x, y) = sum_{i: y_i = y} a_i S(x, x_i), the margin m_i = h(x_i, y_i) -
max_{y != y_i} h(x_i, y) and B = sqrt(Omega+) + sqrt(Omega-), with probability 1 - delta

    Pr[Y != f(X)]  <=  1/n sum_i Phi(m_i / gamma)                    margin loss
        + 8 R (2c - 1) c B / (gamma sqrt(n))                         complexity
        + (16 c (2c - 1) B R^2 / gamma + 1) sqrt(log(4 / delta) / (2n))   confidence

with Phi(x) = min(1, max(0, 1 - x)). docs/theory.md discusses how tight it is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdsk._validation import (
    check_kernel_values,
    check_number,
    check_simplex_point,
    check_symmetric_matrix,
)
from cdsk.theory._decompose import decompose_similarity
from cdsk.theory._labels import check_labels


@dataclass(frozen=True)
class GeneralizationBound:
    """Terms of the bound on the error of the similarity classifier.

    Attributes
    ----------
    margin_loss : float
        Mean of ``Phi(margin / gamma)`` over the points.
    similarity_loss : float
        The same loss written with similarities between classes (equation
        similarity-error-similarity). At least ``margin_loss`` if gamma is at least the
        largest similarity.
    omega_plus, omega_minus : float
        ``sum_y a_y' S+ a_y`` and ``sum_y a_y' S- a_y``, a_y the weights of class y. The
        latter is 0 for a positive semi-definite similarity.
    radius : float
        R, the square root of the largest diagonal entry of S+ and S-.
    complexity : float
        The term of the Rademacher complexity.
    confidence : float
        The term that contains delta.
    total : float
        ``margin_loss + complexity + confidence``. It is vacuous at 1 and above.
    n_classes : int
        Number of classes c.
    gamma, delta : float
        As given.
    """

    margin_loss: float
    similarity_loss: float
    omega_plus: float
    omega_minus: float
    radius: float
    complexity: float
    confidence: float
    total: float
    n_classes: int
    gamma: float
    delta: float


def generalization_bound(
    similarity: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike,
    *,
    gamma: float = 1.0,
    delta: float = 0.05,
) -> GeneralizationBound:
    """Return a bound on the error of ``argmax_y sum_{i: y_i = y} a_i S(x, x_i)``.

    Parameters
    ----------
    similarity : array-like of shape (n_samples, n_samples)
        Symmetric matrix S of non-negative similarities, positive semi-definite or not.
        Map negative similarities to [0, 1] first: ``(S - min) / (max - min)``.
    labels : array-like of shape (n_samples,)
        Class of each point, at least two classes.
    weights : array-like of shape (n_samples,)
        Weights a of the points: non-negative, sum 1.
    gamma : float, default=1.0
        Smallest margin with zero loss.
    delta : float in (0, 1], default=0.05
        Probability with which the bound may fail.

    Returns
    -------
    bound : GeneralizationBound

    Notes
    -----
    The theorem assumes that gamma, delta and the bounds on Omega are fixed before the
    data are seen, and that labels are drawn together with the points. For labels found
    by clustering this is an assumption.

    Examples
    --------
    >>> import numpy as np
    >>> from cdsk.theory import generalization_bound
    >>> bound = generalization_bound(np.eye(4), [0, 0, 1, 1], np.full(4, 0.25))
    >>> bound.margin_loss, bound.omega_plus, bound.omega_minus
    (0.75, 0.25, 0.0)
    """
    S = check_symmetric_matrix(similarity, "similarity")
    check_kernel_values(S, "similarity")
    n = len(S)
    classes, labels = check_labels(labels, n)
    weights = check_simplex_point(weights, n, 1.0, "weights")
    gamma = check_number(gamma, "gamma", above=0)
    delta = check_number(delta, "delta", above=0, at_most=1)
    plus, minus = decompose_similarity(S)

    c = len(classes)
    class_weights = np.zeros((n, c))
    class_weights[np.arange(n), labels] = weights
    votes = S.astype(np.float64, copy=False) @ class_weights
    margin_loss, similarity_loss = _compute_losses(votes, labels, gamma)

    omega_plus, omega_minus = (
        max(float(np.sum(class_weights * (part @ class_weights))), 0.0)
        for part in (plus, minus)
    )
    radius = np.sqrt(max(float(part.diagonal().max()) for part in (plus, minus)))
    size = c * (2 * c - 1) * (np.sqrt(omega_plus) + np.sqrt(omega_minus)) / gamma
    complexity = float(8.0 * size * radius / np.sqrt(n))
    # The paper prints R^2. Its proof gives R, which is larger if R < 1.
    confidence = float(
        (16.0 * size * max(radius, radius**2) + 1.0)
        * np.sqrt(np.log(4.0 / delta) / (2.0 * n))
    )
    return GeneralizationBound(
        margin_loss=margin_loss,
        similarity_loss=similarity_loss,
        omega_plus=omega_plus,
        omega_minus=omega_minus,
        radius=float(radius),
        complexity=complexity,
        confidence=confidence,
        total=margin_loss + complexity + confidence,
        n_classes=c,
        gamma=gamma,
        delta=delta,
    )


def _compute_losses(votes, labels, gamma):
    """Return the margin loss and the similarity loss of votes (n, n_classes)."""
    points = np.arange(len(votes))
    own = votes[points, labels]
    rivals = votes.copy()
    rivals[points, labels] = -np.inf
    margins = own - rivals.max(axis=1)
    margin_loss = float(np.clip(1.0 - margins / gamma, 0.0, 1.0).mean())
    # 1 - 1/(n gamma) [sum_ij (a_i + a_j)/2 S_ij - sum_{i<j} 2 (a_i + a_j) S_ij 1(y_i !=
    # y_j)], rearranged as sums over points: sum_j a_j S_ij (1 - 2 1(y_i != y_j))
    similarity_loss = 1.0 - float(np.mean(2.0 * own - votes.sum(axis=1))) / gamma
    return margin_loss, similarity_loss
