from __future__ import annotations

import pytest

from ebrank.evidence.slots import slot_of
from ebrank.service.store.counting import items_of, shown, steps
from ebrank.testing.histories import event, ranking


@pytest.mark.parametrize("length", [0, 1, 12, 1000, 1003])
def test_a_list_adds_one_to_the_slot_of_each_rank(length: int) -> None:
    entry = ranking("r", "a" * length)
    expected = [(rank - 1, 0, slot_of(rank), 1) for rank in range(1, length + 1)]
    assert steps(entry, range(length)) == expected


def test_the_order_that_was_not_served_adds_nothing() -> None:
    entry = ranking("r", "ab", would_rank=("c", "d", "e"))
    assert items_of(entry) == ("a", "b", "c", "d", "e")
    assert [step[0] for step in steps(entry, items_of(entry))] == ["a", "b"]
    assert shown(entry, [5, 6, 7, 8, 9]) == [5, 6]


def test_a_list_that_waits_for_impressions_adds_and_shows_nothing() -> None:
    entry = ranking("r", "ab", counted=False)
    assert steps(entry, items_of(entry)) == []
    assert not shown(entry, items_of(entry))
    click = event("e", entry, "b", shows=True)
    assert steps(click, [7]) == [(7, 0, 1, 1), (7, 1, 1, 1)]
    assert list(shown(click, [7])) == [7]
