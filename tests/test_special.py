from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from ebrank import special
from ebrank.compiled import kernel

positive = st.floats(1e-6, 1e9)


@given(positive)
def test_log_gamma_agrees_with_high_precision(x: float) -> None:
    exact = float(mpmath.loggamma(x))
    assert special.log_gamma(x) == pytest.approx(exact, rel=1e-12, abs=1e-12)


@given(positive)
def test_digamma_agrees_with_high_precision(x: float) -> None:
    exact = float(mpmath.digamma(x))
    assert special.digamma(x) == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_functions_broadcast_over_arrays() -> None:
    x = np.logspace(-5, 8, 200)
    np.testing.assert_allclose(
        special.log_gamma(x), scipy.special.gammaln(x), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(special.digamma(x), scipy.special.digamma(x), rtol=1e-12, atol=1e-12)


@given(st.floats(0.05, 1e4), st.floats(0.05, 1e4), st.floats(0.01, 0.99))
def test_incomplete_beta_agrees_with_scipy(a: float, b: float, x: float) -> None:
    exact = float(scipy.special.betainc(a, b, x))
    assert special.incomplete_beta(a, b, x) == pytest.approx(exact, rel=1e-8, abs=1e-12)


@kernel
def compiled_quantile(a: float, b: float, probability: float) -> float:
    return special.beta_quantile(a, b, probability)


@given(st.floats(0.5, 1e4), st.floats(0.5, 1e4), st.floats(0.01, 0.99))
def test_compiled_beta_quantile_agrees_with_scipy(a: float, b: float, probability: float) -> None:
    exact = float(special.beta_quantile(a, b, probability))
    assert compiled_quantile(a, b, probability) == pytest.approx(exact, rel=1e-7)
