# SPDX-License-Identifier: BSD-3-Clause
"""Votes -> probabilities of the clusters, calibrated by the votes of the other points.

Shares of the votes are too cautious where votes are many and alike, and too sure where
they are few. So probabilities are

    p(y | x) = (1 - e) h(x, y)^b / sum_z h(x, z)^b + e / c,

with an exponent b (temperature scaling: Guo et al., 2017) and a share e of points that
votes tell nothing of. Both are learned where the answer is known: points of the fit,
their own vote left out, agree with the largest of these votes or do not, and the
largest probability should be the share of those that do. The likelihood counts one
more point of either kind (Platt, 2000), and log b has the standard normal prior: where
all points agree, any large b is as likely as another.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, softmax, xlog1py, xlogy

# Largest logarithm of the exponent: exp does not overflow.
_MOST = 30.0


@dataclass(frozen=True)
class Calibration:
    """How votes become probabilities.

    Attributes
    ----------
    exponent : float
        Of the votes.
    error : float
        Share of the points that votes tell nothing of.
    """

    exponent: float
    error: float

    def probabilities(self, log_votes, shares):
        """Of every cluster (m, c), those of ``shares`` (c,) where nobody votes."""
        alone = np.isneginf(log_votes.max(axis=1))
        if alone.any():
            log_votes = np.where(alone[:, np.newaxis], 0.0, log_votes)
        found = (1.0 - self.error) * softmax(self.exponent * log_votes, axis=1)
        voters = shares > 0
        found += self.error * voters / np.count_nonzero(voters)
        found[alone] = shares
        return found


@dataclass
class LeftOutVotes:
    """Votes for the points of a fit, their own left out; the calibration by them.

    ``log_votes`` (n, c), ``labels`` (n,) and ``counts`` (n,) are those of the rows,
    ``shares`` (c,) the parts of the clusters in all weights.
    """

    log_votes: NDArray[np.float64]
    labels: NDArray[np.int64]
    counts: NDArray[np.float64]
    shares: NDArray[np.float64]

    @cached_property
    def calibration(self):
        """Learned when it is asked for."""
        heard = (self.counts > 0) & ~np.isneginf(self.log_votes.max(axis=1))
        log_votes = self.log_votes[heard]
        agrees = np.argmax(log_votes, axis=1) == self.labels[heard]
        return learn(log_votes[:, self.shares > 0], agrees, self.counts[heard])

    def __getstate__(self):
        # learned again when it is asked for: saved models do not depend on their use
        return {name: v for name, v in vars(self).items() if name != "calibration"}

    def probabilities(self):
        """Probability of the own cluster of every row (n,)."""
        all_of_them = self.calibration.probabilities(self.log_votes, self.shares)
        return all_of_them[np.arange(len(self.labels)), self.labels]


def learn(log_votes, agrees, counts):
    """The ``Calibration`` by votes (n, c) that agree with the labels or do not.

    Every row has votes, and counts so many times.
    """
    n_clusters = log_votes.shape[1]
    if n_clusters == 1:  # nothing is in doubt
        return Calibration(1.0, 0.0)
    relative = log_votes - log_votes.max(axis=1, keepdims=True)
    many, few = counts @ agrees, counts @ ~agrees
    target = np.where(agrees, (many + 1.0) / (many + 2.0), 1.0 / (few + 2.0))

    def loss(parameters):
        exponent, error = np.exp(parameters[0]), expit(parameters[1])
        largest = 1.0 / np.exp(exponent * relative).sum(axis=1)
        p = (1.0 - error) * largest + error / n_clusters
        likelihood = xlogy(target, p) + xlog1py(1.0 - target, -p)
        return 0.5 * parameters[0] ** 2 - counts @ likelihood

    # of n points one may always be such a point: below, the loss is flat
    odds = np.log(1.0 + counts.sum())
    found = minimize(
        *(loss, [0.0, -0.5 * odds]),
        method="L-BFGS-B",
        bounds=[(-_MOST, _MOST), (-odds, odds)],
        options={"ftol": 1e-12},
    )
    # the digits that the minimum has: repeated rows and weights give the same ones
    log_exponent, log_odds = np.round(found.x, 3)
    return Calibration(float(np.exp(log_exponent)), float(expit(log_odds)))
