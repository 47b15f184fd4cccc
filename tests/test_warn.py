# SPDX-License-Identifier: BSD-3-Clause
"""Warnings name the line that called the package, from wherever in it."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import cdsk
from cdsk import baselines

COPIES = np.repeat([[0.0, 1.0], [2.0, 3.0]], 20, axis=0)


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
@pytest.mark.parametrize(
    "estimator", [cdsk.CDSK(3), cdsk.BlockCDSK(3)], ids=lambda one: type(one).__name__
)
def test_the_line_of_the_caller(estimator, method):
    with pytest.warns(ConvergenceWarning, match="has 2 distinct points") as told:
        getattr(estimator, method)(COPIES)
    assert {warning.filename for warning in told} == {__file__}


def test_also_of_a_rival():
    with pytest.warns(ConvergenceWarning, match="X has 2 distinct points") as told:
        baselines.SelfTuningSpectral(3, random_state=0).fit_predict(COPIES)
    assert {warning.filename for warning in told} == {__file__}


def test_of_a_function():
    with pytest.warns(ConvergenceWarning, match="solve_qp did not converge") as told:
        cdsk.solve_qp(np.eye(9), np.linspace(0.0, 1.0, 9), max_iter=1)
    assert {warning.filename for warning in told} == {__file__}
