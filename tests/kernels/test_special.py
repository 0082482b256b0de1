from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from ebrank.kernels import special

positive = st.floats(1e-6, 1e9)


@given(st.floats(2.0**-1022, 1e308))
def test_log_agrees_with_high_precision(x: float) -> None:
    assert special.log(x) == pytest.approx(float(mpmath.log(x)), rel=1e-15, abs=1e-15)


@given(positive)
def test_log_gamma_and_digamma_agree_with_high_precision(x: float) -> None:
    precise = float(mpmath.loggamma(x)), float(mpmath.digamma(x))
    assert special.log_gamma_and_digamma(x) == pytest.approx(precise, rel=1e-12, abs=1e-12)


def test_functions_broadcast_over_arrays() -> None:
    x = np.logspace(-5, 8, 200)
    np.testing.assert_allclose(special.log(x), np.log(x), rtol=1e-15, atol=1e-15)
    value, slope = special.log_gamma_and_digamma(x)
    np.testing.assert_allclose(value, scipy.special.gammaln(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slope, scipy.special.digamma(x), rtol=1e-12, atol=1e-12)
