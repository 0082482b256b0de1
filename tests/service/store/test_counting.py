from __future__ import annotations

import pytest

from ebrank.evidence.slots import slot_of
from ebrank.service.store.counting import EVENT, entry_of, steps
from ebrank.service.store.tables import EVENTS
from ebrank.testing.histories import event, ranking


@pytest.mark.parametrize("length", [0, 1, 12, 1000, 1003])
def test_a_list_adds_one_to_the_slot_of_each_rank(length: int) -> None:
    entry = ranking("r", "a" * length)
    expected = [(rank - 1, 0, slot_of(rank), 1) for rank in range(1, length + 1)]
    assert steps(entry, range(length)) == expected


def test_rows_are_read_back_unless_a_value_is_missing() -> None:
    entry = event("e", ranking("r", "ab"), "b")
    row = (*EVENT.row(1, 2, [7], entry), "q")
    assert entry_of(EVENT, row, {7: "b"}) == entry
    needed = [column.name for column in EVENTS.columns if not column.null]
    assert {"seq", "query", "place"} <= set(needed)
    for name in {*needed} & {*EVENT.columns}:
        place = EVENT.columns.index(name)
        with pytest.raises(ValueError, match="invalid log row"):
            entry_of(EVENT, (*row[:place], None, *row[place + 1 :]), {7: "b"})
