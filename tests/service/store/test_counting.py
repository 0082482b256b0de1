"""What entries add: to counts, and to whatever else is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.evidence.slots import slot_of
from ebrank.service.store.counting import (
    ACCEPTED,
    EVENT,
    Change,
    Placed,
    change_of,
    decide,
    entry_of,
    steps,
)
from ebrank.service.store.records import EventEntry
from ebrank.service.store.tables import EVENTS
from tests.service.histories import event, ranking


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


WEIGHTS = (0.25, 0.5, 1.0)
KINDS = {"impression": 0, "click": 1, "cart": 2, "buy": 3, "hide": -1, "seen": 0}


@given(
    counted=st.booleans(),
    did=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([*KINDS]), st.booleans())),
)
def test_changes_add_up_to_the_best_outcome_of_each_impression(
    counted: bool, did: list[tuple[int, str, bool]]
) -> None:
    """However often and in whatever order users do things, on a page or on a refresh of it."""
    page = ranking("r1", "abc", offset=10, counted=counted)
    again = replace(page, id="r2", continues="r1", seen=(11, 0, 13), arm="t:a")
    log: list[Placed] = [(7, (0, 1, 2), page), (7, (0, 1, 2), again)]
    for number, (place, kind, sent_again) in enumerate(did):
        done = event(f"e{number - sent_again}", page, "abc"[place], kind)
        shows = not counted and (KINDS[kind] != 0 or kind == "impression")
        done = replace(done, rank=11 + place, outcome=KINDS[kind], shows=shows)
        log.append((7, (place,), done))
    written = decide(log, [])
    changes: list[Change] = [
        change_of(entry, result, places, WEIGHTS)
        for (_, places, entry), result in zip(log, written, strict=True)
        if result.status == "accepted" and isinstance(entry, EventEntry)
    ]
    lists = [change_of(entry, ACCEPTED, (0, 1, 2), WEIGHTS) for entry in (page, again)]
    assert {change.view for change in changes} <= {change.view for change in lists} == {"r1"}
    assert [change.lists for change in lists] == [1, 0]
    assert [change.ranks for change in lists] == ([range(11, 14), [12]] if counted else [(), ()])
    for place in range(3):
        mine = [change for change in changes if change.rows == (place,)]
        types = [c.entry.type for c in mine if isinstance(c.entry, EventEntry)]
        assert len(types) == len(set(types)), "a type counts once"
        best = 0 if "hide" in types else max([KINDS[kind] for kind in types], default=0)
        assert sum(change.clicks for change in mine) == (best > 0)
        assert sum(change.worth for change in mine) == (0.0, *WEIGHTS)[best]
        confirmed = any(kind != "seen" for kind in types)
        assert sum(map(len, (c.shown for c in mine))) == (confirmed and not counted)
        assert all(change.ranks == [11 + place] for change in mine if change.shown)
