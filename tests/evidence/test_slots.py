from __future__ import annotations

import pytest

from ebrank import ParameterError
from ebrank.evidence.slots import DEEPEST, SLOTS, ranks_of, slot_of, slots_for


def test_slots_cover_every_rank_once() -> None:
    ranks = [rank for slot in range(SLOTS) for rank in ranks_of(slot)]
    assert ranks == list(range(1, DEEPEST + 1))
    for slot in range(SLOTS):
        assert {slot_of(rank) for rank in ranks_of(slot)} == {slot}
    assert [slot_of(rank) for rank in range(1, 12)] == list(range(11)), "ten have their own"
    assert slot_of(DEEPEST + 1) == slot_of(10**9) == SLOTS - 1 == 15
    assert [slots_for(length) for length in (1, 10, 11, 15, 16)] == [1, 10, 11, 11, 12]


@pytest.mark.parametrize("rank", [0, -3])
def test_ranks_are_counted_from_one(rank: int) -> None:
    with pytest.raises(ParameterError, match=f"from 1, not {rank}"):
        slot_of(rank)
