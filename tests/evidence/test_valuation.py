"""What counts are worth: whole numbers, close to the plain ones, for every curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import Examination, ParameterError
from ebrank.evidence import CLICKS, Behaviors, Valuation
from ebrank.evidence.slots import SLOTS, ranks_of
from ebrank.evidence.valuation import UNIT
from tests.evidence.logs import SHOP, curves, slow_p


@given(curves, st.sampled_from([CLICKS, SHOP]), st.integers(1, SLOTS))
def test_the_table_holds_the_plain_weights_in_units(
    curve: Examination, behaviors: Behaviors, slots: int
) -> None:
    valuation = Valuation.of(curve, behaviors, slots=slots)
    p = np.array([slow_p(curve, ranks_of(slot)[0]) for slot in range(slots)])
    seen, exposure, *rest = valuation.table.reshape(-1, slots)
    np.testing.assert_array_equal(seen, p > 0)
    np.testing.assert_allclose(exposure * UNIT, p, rtol=0, atol=UNIT)
    k = len(behaviors.all)
    assert len(rest) == 2 * k
    for weight, clicks, weighted in zip(behaviors.weights, rest[:k], rest[k:], strict=True):
        np.testing.assert_allclose(clicks * UNIT, weight * (p > 0), rtol=0, atol=UNIT)
        expected = [weight / x if x else 0.0 for x in p]
        np.testing.assert_allclose(weighted * UNIT, expected, rtol=1e-12, atol=UNIT)
    np.testing.assert_array_equal(valuation.exposure, exposure)


def test_clicks_of_impressions_spread_over_a_band_are_unbiased() -> None:
    curve, relevance = Examination(curve=tuple(np.linspace(1, 0.1, 15))), 0.4
    valuation = Valuation.of(curve, slots=11)
    clicks = sum(float(curve([k])[0]) * relevance for k in ranks_of(10))
    weighted = clicks * valuation.table[-1] * UNIT
    assert weighted / len(ranks_of(10)) == pytest.approx(relevance)


def test_ranks_that_hardly_anyone_examines_are_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="rank 2 with probability 1e-05, too rarely"):
        Valuation.of(Examination(curve=(1.0, 1e-5)), slots=3)
    with pytest.raises(ParameterError, match="ranks 101 to 300 with probability"):
        Valuation.of(Examination(severity=4.6), slots=SLOTS)
    Valuation.of(Examination(severity=4.6, cutoff=50), slots=SLOTS)
