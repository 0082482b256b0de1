"""What events add to the counters of every store, and which add nothing."""

from __future__ import annotations

import pytest

from ebrank.service.store.base import Store
from ebrank.service.store.records import EventEntry, Operation
from tests.service.store.samples import event, new_items, ranking, sums, write


def test_events_count_by_what_was_logged(store: Store) -> None:
    store.put_items("q", new_items(*"abc"), 1.0)
    served, quiet = ranking("r1", "abc"), ranking("r2", "abc", counted=False)
    entries: list[Operation] = [
        served,
        quiet,
        event("e1", served, "c"),
        event("e2", quiet, "a", "impression", shows=True, time=21.0),
        event("e3", quiet, "b", shows=True, time=22.0),
        event("e4", quiet, "c", "bookmark"),
    ]
    write(store, entries)
    p = served.examination
    assert sums(store.load("q")) == {
        "a": (2, 0, 0.0, p[0] + p[0], 10.0),
        "b": (2, 1, 1.0 / p[1], p[1] + p[1], 10.0),
        "c": (1, 1, 2.0, 0.5, 10.0),
    }


@pytest.mark.parametrize("together", [True, False])
def test_an_item_of_a_list_is_shown_once(store: Store, together: bool) -> None:
    """By the first event that counts: a duplicate shows nothing, what follows one that does too."""
    store.put_items("q", new_items(*"abc"), 1.0)
    one, two = ranking("r1", "abc", counted=False), ranking("r2", "abc", counted=False)
    write(store, [one, two])
    entries = [
        event("e1", one, "a", "impression", shows=True),
        event("e2", one, "a", "click", shows=True),
        event("e3", one, "b", "click", shows=True),
        event("e4", one, "b", "impression", shows=True),
        event("e1", one, "c", "impression", shows=True),
        event("e5", one, "c", "click", shows=True),
        event("e6", two, "a", "bookmark"),
        event("e7", two, "a", "click", shows=True),
    ]
    batches = [entries] if together else [[entry] for entry in entries]
    written = [one for batch in batches for one in store.write(batch, flush=False)]
    assert [one.status for one in written] == ["accepted"] * 4 + ["duplicate"] + ["accepted"] * 3
    expected = [True, False, True, False, False, True, False, True]
    assert [one.shows for one in written] == expected
    logged = [entry for entry in store.log() if isinstance(entry, EventEntry)]
    assert [entry.shows for entry in logged] == expected[:4] + expected[5:]
    counts = {item: row[:2] for item, row in sums(store.load("q")).items()}
    assert counts == {"a": (2, 2), "b": (1, 1), "c": (1, 1)}


@pytest.mark.parametrize("together", [True, False])
def test_duplicates_count_once(store: Store, together: bool) -> None:
    store.put_items("q", new_items(*"abc"), 1.0)
    served = ranking("r1", "abc")
    entries: list[Operation] = [
        served,
        event("e1", served, "a"),
        event("e1", served, "b"),
        event("e2", served, "a"),
        event("e3", served, "a", "impression"),
    ]
    if together:
        written = write(store, entries)
    else:
        written = [one for entry in entries for one in write(store, [entry])]
    statuses = ["accepted", "accepted", "duplicate", "duplicate", "accepted"]
    assert [one.status for one in written] == statuses
    assert written[2].reason == "event_id was seen before"
    assert "was counted for this item" in written[3].reason
    assert [n[:2] for n in sums(store.load("q")).values()] == [(1, 1), (1, 0), (1, 0)]
    assert list(store.log()) == [entries[0], entries[1], entries[4]]
    assert [one.status for one in write(store, entries[1:])] == ["duplicate"] * 4
