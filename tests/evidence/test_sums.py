"""The sums of one item: plain Python and compiled code agree to the last bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination
from ebrank.evidence import CLICKS, Behaviors
from ebrank.evidence.sums import clicks_sum, exposure_sum, number, shown_sum, weighted_clicks_sum
from tests.evidence.logs import SHOP, curves

MANY = 2**31 - 1


def some_counts(seed: int, behaviors: Behaviors, slots: int, most: int) -> BehaviorStats:
    """Return random counts of three items."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, most // behaviors.outcomes, (3, behaviors.outcomes, slots))
    counts[:, 0] += counts[:, 1:].sum(axis=1)
    return BehaviorStats(counts.astype(np.int32), behaviors)


@given(
    st.integers(0, 10**6),
    st.sampled_from([CLICKS, SHOP]),
    st.integers(1, 16),
    st.sampled_from([8, 1000, 10**5]),
    curves,
)
def test_plain_and_compiled_sums_have_the_same_bits(
    seed: int, behaviors: Behaviors, slots: int, most: int, curve: Examination
) -> None:
    stats = some_counts(seed, behaviors, slots, most)
    valuation = stats.valuation(curve)
    sums = stats.sums(curve)
    k = len(behaviors.all)
    for item in range(3):
        counts = stats.counts[item].ravel().tolist()
        table = valuation.table.tolist()
        plain = [
            float(shown_sum(counts, slots, table)),
            number(clicks_sum(counts, slots, k, table)),
            number(weighted_clicks_sum(counts, slots, k, table)),
            number(exposure_sum(counts, slots, table)),
        ]
        assert plain == [float(values[item]) for values in sums]


def test_the_largest_counts_still_fit() -> None:
    slots = 4  # 2³³ impressions less four, all of them clicked at the top
    counts = np.full((1, 2, slots), MANY, np.int32)
    sums = BehaviorStats(counts).sums(Examination(severity=0.0))
    for values in sums:
        assert values[0] == 4.0 * MANY
