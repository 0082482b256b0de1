"""Labels that move apart: in order, with gaps, in bounds, and no further than they must."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.paper.report.figures.panels import spread

HEIGHT, GAP = 186.0, 10.5
HEIGHTS = st.lists(st.floats(-50, 250), min_size=1, max_size=30)


@given(HEIGHTS)
def test_labels_keep_order_gap_and_bounds(wanted: list[float]) -> None:
    heights = spread(wanted, gap=GAP, low=0.0, high=HEIGHT)
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    rising = [heights[index] for index in order]
    room = min(GAP, HEIGHT / max(1, len(wanted) - 1))
    for below, above in pairwise(rising):
        assert above - below >= room - 1e-6
    assert rising[0] >= -1e-6
    assert rising[-1] <= HEIGHT + 1e-6


def test_where_there_is_no_room_for_all_the_gap_shrinks() -> None:
    found = spread([93.0] * 32, gap=GAP, low=0.0, high=HEIGHT)
    assert found == pytest.approx([6.0 * place for place in range(32)])
    assert spread([], gap=1.0, low=0.0, high=1.0) == []
