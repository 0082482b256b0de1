from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import ParameterError
from ebrank.evidence.slots import SLOTS, ranks_of, slot_name, slot_of, slots_for


def test_the_slots_share_out_the_ranks_without_gaps() -> None:
    ranks = [rank for slot in range(SLOTS) for rank in ranks_of(slot)]
    assert ranks == list(range(1, 1001))
    assert all(slot_of(rank) == slot for slot in range(SLOTS) for rank in ranks_of(slot))


@given(st.integers(1, 10**9))
def test_every_rank_has_a_slot_and_deeper_ones_no_lower(rank: int) -> None:
    assert 0 <= slot_of(rank) <= slot_of(rank + 1) < SLOTS
    assert slots_for(rank) == slot_of(rank) + 1
    assert rank > 10 or slot_of(rank) == rank - 1


def test_ranks_are_counted_from_one() -> None:
    for rank in (0, -3):
        with pytest.raises(ParameterError, match=f"from 1, not {rank}"):
            slot_of(rank)


def test_slots_are_named_by_their_ranks() -> None:
    assert [slot_name(slot) for slot in (0, 9, 10, SLOTS - 1)] == [
        "rank 1",
        "rank 10",
        "ranks 11 to 15",
        "ranks 301 to 1000",
    ]
