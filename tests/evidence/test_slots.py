from __future__ import annotations

import pytest

from ebrank import ParameterError
from ebrank.evidence.slots import (
    DEEPEST,
    FIRST_RANKS,
    SLOTS,
    ranks_of,
    slot_name,
    slot_of,
    slots_for,
)


def test_slots_cover_every_rank_once() -> None:
    ranks = [rank for slot in range(SLOTS) for rank in ranks_of(slot)]
    assert ranks == list(range(1, DEEPEST + 1))
    for slot in range(SLOTS):
        assert {slot_of(rank) for rank in ranks_of(slot)} == {slot}


def test_the_first_ten_ranks_have_slots_of_their_own() -> None:
    assert [slot_of(rank) for rank in range(1, 12)] == list(range(11))
    assert all(len(ranks_of(slot)) == 1 for slot in range(10))
    assert len(FIRST_RANKS) == SLOTS == 16


def test_ranks_below_the_deepest_belong_to_the_last_slot() -> None:
    assert slot_of(DEEPEST + 1) == slot_of(10**9) == SLOTS - 1


@pytest.mark.parametrize(("length", "slots"), [(1, 1), (10, 10), (11, 11), (15, 11), (16, 12)])
def test_a_list_needs_the_slots_of_its_last_rank(length: int, slots: int) -> None:
    assert slots_for(length) == slots


def test_names_say_which_ranks() -> None:
    assert slot_name(9) == "rank 10"
    assert slot_name(SLOTS - 1) == "ranks 301 to 1000"


@pytest.mark.parametrize("rank", [0, -3])
def test_ranks_are_counted_from_one(rank: int) -> None:
    with pytest.raises(ParameterError, match=f"from 1, not {rank}"):
        slot_of(rank)
