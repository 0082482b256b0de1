from __future__ import annotations

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.bonus.marginal_certainty import MarginalCertainty
from ebrank.errors import ParameterError
from ebrank.policy.policies import parse


@given(st.floats(0, 1), st.floats(0, 100), st.floats(0.1, 20), st.floats(0.1, 20), st.floats(0, 99))
def test_it_is_epsilon_times_what_one_more_look_takes_from_the_variance(
    relevance: float, exposure: float, alpha: float, beta: float, epsilon: float
) -> None:
    slope = mpmath.diff(lambda e: relevance / (e + alpha + beta), exposure)
    value = MarginalCertainty.value(relevance, exposure, alpha, beta, epsilon)
    assert value == pytest.approx(-epsilon * float(slope), rel=1e-6, abs=1e-12)


def test_it_falls_as_an_item_is_looked_at() -> None:
    values = [MarginalCertainty.value(0.5, exposure, 1.0, 5.0, 20.0) for exposure in (0, 1, 10)]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(20 * 0.5 / 36)


def test_epsilon_is_the_paper_s_and_never_negative() -> None:
    assert parse("ebrank").bonus == MarginalCertainty(epsilon=20.0)
    with pytest.raises(ParameterError, match="epsilon takes a number of 0 or more"):
        MarginalCertainty(epsilon=-1.0)
    assert not MarginalCertainty.noisy
