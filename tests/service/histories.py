"""Small histories for checks of stores, and what a store holds, as values that compare exactly."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from ebrank.evidence.behaviors import NEGATIVE
from ebrank.service.store.base import Store
from ebrank.service.store.records import EventEntry, NewItem, Operation, QueryState, RankingEntry
from ebrank.service.store.rows import count_rows

BEHAVIORS = {"click": 1, "purchase": 2, "hide": NEGATIVE, "return": NEGATIVE}
"""Outcomes by name; anything else does not count."""


def new_items(*names: str, width: int = 2) -> list[NewItem]:
    """Return items with different features."""
    return [NewItem(name, (float(ord(name[0])),) * width) for name in names]


def ranking(
    name: str,
    items: str,
    *,
    query: str = "q",
    time: float = 10.0,
    **more: Any,  # noqa: ANN401
) -> RankingEntry:
    """Return a list of items with one-letter names."""
    return RankingEntry(name, query, time, 1, tuple(items), **more)


def event(
    name: str,
    served: RankingEntry,
    item: str,
    kind: str = "click",
    *,
    shows: bool = False,
    time: float = 20.0,
) -> EventEntry:
    """Return what a user did with an item of a list."""
    rank, outcome = served.items.index(item) + 1, BEHAVIORS.get(kind, 0)
    return EventEntry(
        name, served.id, served.query, item, kind, rank, outcome, shows, time - 1.0, time
    )


def counts(state: QueryState | None) -> dict[str, dict[tuple[int, int], int]]:
    """Return the counts of each item that are not 0, by outcome and rank (up to 10)."""
    if state is None:
        return {}
    by_item: dict[str, dict[tuple[int, int], int]] = {name: {} for name in state.ids}
    for place, outcome, slot, count, _ in count_rows(state):
        if count:
            by_item[state.ids[place]][outcome, slot + 1] = count
    return by_item


def first_shown(state: QueryState | None) -> dict[str, float | None]:
    """Return when each item was first shown."""
    if state is None:
        return {}
    times = [None if np.isnan(time) else time for time in state.first_shown.tolist()]
    return dict(zip(state.ids, times, strict=True))


def bits(state: QueryState | None) -> dict[str, Any]:
    """Return a state without its version as values that compare exactly, NaN included."""
    if state is None:
        return {}
    values = {field.name: getattr(state, field.name) for field in fields(QueryState)}
    del values["version"]
    return {
        name: (value.dtype, value.shape, value.tobytes())
        if isinstance(value, np.ndarray)
        else value
        for name, value in values.items()
    }


async def catalog(store: Store) -> dict[str, list[float | None]]:
    """Return the catalog's rows, None where a number is missing."""
    return {
        name: [None if np.isnan(number) else number for number in row.tolist()]
        async for name, row in store.catalog.entries()
    }


async def contents(store: Store) -> dict[str, Any]:
    """Return everything in a store, to compare stores."""
    queries = await store.items.queries()
    return {
        "current": [bits(await store.items.load(query)) for query in queries],
        "snapshot": [bits(await store.items.snapshot(query)) for query in queries],
        "catalog": await catalog(store),
        "log": [entry async for entry in store.log.entries()],
        "models": [
            (record, await store.models.document(record.version))
            for record in await store.models.all()
        ],
        "active": await store.models.active(),
        "settings": await store.meta.all(),
        "minutes": [(minute.start, minute.values) for minute in await store.meta.minutes(0.0)],
        "last": await store.log.last_time(),
        "deletions": await store.deletions.all(),
    }


async def fill(store: Store) -> list[Operation]:
    """Write a history with a bit of everything to an empty store; return its log."""
    await store.items.put("q", new_items("a", "b", "c", "d"), 1.0)
    await store.items.put("other query ☂", [NewItem("ä", (1.0, float("nan")))], 2.0)
    explored = (True, False, False, True)
    first = ranking("r1", "abcd", explored=explored, user="u", cost=0.25)
    late = ranking("r2", "cab", time=30.0, counted=False)
    dwell = replace(event("e5", first, "a", "dwell>=30", time=70.0), outcome=1, value=42.5)
    late = replace(late, offset=10, continues="r1", seen=(3, 1, 0), retracted=True)
    umlaut = RankingEntry("r3", "other query ☂", 50.0, 0, ("ä",), relevance=(0.1,))
    log: list[Operation] = [
        first,
        event("e1", first, "b"),
        late,
        event("e2", late, "a", "impression", shows=True, time=40.0),
        event("e3", late, "b", shows=True, time=41.0),
        umlaut,
        event("e4", umlaut, "ä", time=60.0),
        dwell,
    ]
    commit = await store.log.write(log)
    assert {write.status for write in commit.written} == {"accepted"}
    await store.items.withdraw("q", "d", 71.0)
    await store.catalog.put([NewItem("a", (0.5, float("nan"))), NewItem("☂", (1.0,))], 71.0)
    return log
