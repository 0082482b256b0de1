from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ebrank.rankers.kernels.steps import step_rates


@given(st.lists(st.booleans(), max_size=40), st.floats(0, 2), st.floats(0, 1))
def test_each_step_taken_lowers_the_next_rate(
    stepped: list[bool], rate: float, decay: float
) -> None:
    rates = step_rates(np.array(stepped, np.bool_), rate, decay)
    taken = 0
    for got, step in zip(rates.tolist(), stepped, strict=True):
        expected = rate * decay**taken if step else 0.0
        assert np.isclose(got, expected, rtol=1e-12, atol=0) or abs(got - expected) < 1e-300
        taken += step
