"""Small histories for checks of stores, and what a store holds, as values that compare exactly."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ebrank.behavior import FIELDS
from ebrank.service.store.base import Store, StoreView
from ebrank.service.store.records import EventEntry, NewItem, Operation, QueryState, RankingEntry

CURVE = (1.0, 0.6309297535714574, 0.5, 0.0)


def new_items(*names: str, width: int = 2) -> list[NewItem]:
    """Return items whose features tell them apart."""
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
    return RankingEntry(name, query, time, 1, tuple(items), CURVE[: len(items)], **more)


def event(
    name: str,
    of: RankingEntry,
    item: str,
    kind: str = "click",
    *,
    shows: bool = False,
    time: float = 20.0,
) -> EventEntry:
    """Return what a user did with an item of a list."""
    place = of.items.index(item)
    p = of.examination[place]
    return EventEntry(name, of.id, of.query, item, kind, place + 1, p, shows, time - 1.0, time)


def sums(state: QueryState | None) -> dict[str, tuple[Any, ...]]:
    """Return n, c, C, E and the time of the first impression of each item, to compare exactly."""
    if state is None:
        return {}
    columns = [getattr(state.stats, field).tolist() for field in FIELDS]
    first = [None if np.isnan(time) else time for time in state.first_shown.tolist()]
    return dict(zip(state.ids, zip(*columns, first, strict=True), strict=True))


def bits(state: QueryState | None) -> dict[str, Any]:
    """Return all of a state but its version as values that compare exactly, NaN included."""
    if state is None:
        return {}
    found = {field.name: getattr(state, field.name) for field in fields(QueryState)}
    del found["version"]
    stats = found.pop("stats")
    arrays = found | {field: getattr(stats, field) for field in FIELDS}
    return {
        name: (value.dtype, value.shape, value.tobytes())
        if isinstance(value, np.ndarray)
        else value
        for name, value in arrays.items()
    }


async def contents(store: StoreView) -> dict[str, Any]:
    """Return all that a store holds, to compare stores."""
    queries = await store.items.queries()
    return {
        "current": [bits(await store.items.load(query)) for query in queries],
        "snapshot": [bits(await store.items.snapshot(query)) for query in queries],
        "log": [entry async for entry in store.log.entries()],
        "models": [
            (record, await store.models.document(record.version))
            for record in await store.models.all()
        ],
        "active": await store.models.active(),
        "settings": await store.meta.all(),
        "minutes": [(minute.start, minute.values) for minute in await store.meta.minutes(0.0)],
        "last": await store.log.last_time(),
    }


async def fill(store: Store) -> list[Operation]:
    """Write a history with a bit of everything to an empty store; return its log."""
    await store.items.put("q", new_items("a", "b", "c", "d"), 1.0)
    await store.items.put("other query ☂", [NewItem("ä", (1.0, float("nan")))], 2.0)
    first = ranking("r1", "abcd", explored=(True, False, False, True), user="u", cost=0.25)
    late = ranking("r2", "cab", time=30.0, counted=False, would_rank=("a", "b", "c"))
    umlaut = RankingEntry("r3", "other query ☂", 50.0, 0, ("ä",), (0.3,), relevance=(0.1,))
    log: list[Operation] = [
        first,
        event("e1", first, "b"),
        late,
        event("e2", late, "a", "impression", shows=True, time=40.0),
        event("e3", late, "b", shows=True, time=41.0),
        umlaut,
        event("e4", umlaut, "ä", time=60.0),
        event("e5", first, "a", time=70.0),
    ]
    commit = await store.log.write(log)
    assert {one.status for one in commit.written} == {"accepted"}
    await store.items.withdraw("q", "d", 71.0)
    return log
