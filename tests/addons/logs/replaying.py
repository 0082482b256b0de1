"""The same events through a store: what the service would have counted, and random logs of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from ebrank.evidence import Behaviors
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, NewItem, RankingEntry
from ebrank.service.store.rows import count_rows
from tests.service.store.blocking import Blocking

BEHAVIORS = Behaviors.parse(["click=0.3", "dwell>=30=0.6", "purchase"], negative=["hide"])
TYPES = ("impression", "click", "purchase", "dwell", "hide", "hover", "")
"""The last two count nothing: the service rejects them."""
VALUES = (3.0, 30.0, 1e3)
QUERIES = ("tea", "käse, 'alt'", 'say "hi"')
ITEMS = ("a", "b", "C", "ü", "10")
RANKS = (1, 2, 3, 10, 11, 15, 16, 26, 300, 301, 5000)

Counts = dict[tuple[str, str, int, int], tuple[int, float | None]]
"""How many, and when first, by query, item, outcome and slot."""


@dataclass(frozen=True)
class Event:
    """A row of a log."""

    ranking: str
    query: str
    item: str
    type: str
    rank: int
    time: float
    value: float = 1.0


@dataclass(frozen=True)
class Served:
    """A row of a file of lists."""

    ranking: str
    query: str
    items: tuple[str, ...]
    time: float


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Return events of a few lists, in any order: duplicates, upgrades, clicks without impressions.

    An item of a list has one rank; everything else is as it comes.
    """
    lists = draw(st.integers(1, 4))
    queries = [draw(st.sampled_from(QUERIES)) for _ in range(lists)]
    ranks = [
        dict(zip(ITEMS, draw(st.permutations(RANKS))[: len(ITEMS)], strict=True))
        for _ in range(lists)
    ]
    chosen = draw(
        st.lists(
            st.tuples(
                st.integers(0, lists - 1),
                st.sampled_from(ITEMS),
                st.sampled_from(TYPES),
                st.integers(1_700_000_000, 1_700_000_050),
                st.sampled_from(VALUES),
            ),
            min_size=1,
            max_size=30,
        )
    )
    return [
        Event(f"r{at}", queries[at], item, kind, ranks[at][item], time + 0.25, value)
        for at, item, kind, time, value in chosen
    ]


@st.composite
def served_logs(draw: st.DrawFn) -> tuple[list[Served], list[Event]]:
    """Return lists that were served, and events that may cite others, or items in none of them."""
    lists = [
        Served(
            f"r{at}",
            draw(st.sampled_from(QUERIES)),
            tuple(draw(st.permutations(ITEMS))[: draw(st.integers(1, len(ITEMS)))]),
            1_700_000_000.5 + at,
        )
        for at in range(draw(st.integers(1, 4)))
    ]
    event = st.builds(
        Event,
        st.sampled_from(["r0", "r1", "r2", "r3", "r9"]),
        st.just("what the event claims"),
        st.sampled_from(ITEMS),
        st.sampled_from(TYPES),
        st.integers(1, 9),
        st.integers(1_700_000_100, 1_700_000_150).map(float),
        st.sampled_from(VALUES),
    )
    return lists, draw(st.lists(event, min_size=1, max_size=30))


def confirmed(events: Sequence[Event]) -> Counts:
    """Return what a store counts where impressions are confirmed, from events as they came."""
    store = Blocking(MemoryStore())
    ordered = sorted(events, key=lambda event: event.time)
    _enter(store, {(event.query, event.item) for event in events})
    for event in ordered:
        _write(store, event, event.query, event.rank, counted=False)
    return _counts(store)


def served(lists: Sequence[Served], events: Sequence[Event]) -> Counts:
    """Return what a store counts where lists count when served, and events cite them."""
    store = Blocking(MemoryStore())
    _enter(store, {(one.query, item) for one in lists for item in one.items})
    for one in lists:
        store.log.write([RankingEntry(one.ranking, one.query, one.time, 0, one.items)])
    for event in sorted(events, key=lambda event: event.time):
        cited = store.log.ranking(event.ranking)
        if cited is not None and event.item in cited.items:  # else the service rejects it
            rank = cited.items.index(event.item) + 1
            _write(store, event, cited.query, rank, counted=True)
    return _counts(store)


def _enter(store: Blocking, pairs: set[tuple[str, str]]) -> None:
    for query, item in sorted(pairs):
        store.items.put(query, [NewItem(item, (1.0,))], 1.0)


def _write(store: Blocking, event: Event, query: str, rank: int, *, counted: bool) -> None:
    """Log an event as the engine would: see `FeedbackRules`."""
    kind = BEHAVIORS.of_event(event.type, event.value) or event.type
    known = {"impression", "dwell", *BEHAVIORS.names, *BEHAVIORS.negative}
    if kind not in known:
        return
    outcome = 0 if kind in ("impression", "dwell") else BEHAVIORS.outcome(kind)
    entry = EventEntry(
        event_id=json.dumps([event.ranking, event.item, kind]),
        ranking_id=event.ranking,
        query=query,
        item=event.item,
        type=kind,
        rank=rank,
        outcome=outcome,
        shows=not counted and (outcome != 0 or kind == "impression"),
        time=event.time,
        received=event.time,
    )
    store.log.write([entry])


def _counts(store: Blocking) -> Counts:
    found: Counts = {}
    for query in store.items.queries():
        state = store.items.load(query)
        for place, outcome, slot, count, _ in count_rows(state):
            first = float(state.first_shown[place])
            found[query, state.ids[place], outcome, slot] = count, first
    return found


def file_counts(path: Path) -> Counts:
    """Return the rows of a file of evidence, with the time when an item was first shown."""
    rows = pq.read_table(path).to_pylist()
    keys = [(row["query"], row["item"], row["outcome"], row["slot"]) for row in rows]
    assert keys == sorted(keys, key=lambda key: (key[0].encode(), key[1].encode(), *key[2:]))
    assert len(set(keys)) == len(keys)
    first: dict[tuple[str, str], float | None] = {}
    for row in rows:
        name = row["query"], row["item"]
        times = [time for time in (first.get(name), row["first"]) if time is not None]
        first[name] = min(times, default=None)
    return {key: (row["count"], first[key[:2]]) for key, row in zip(keys, rows, strict=True)}


Form = Literal["parquet", "csv", "ndjson"]


def write(path: Path, rows: Sequence[Event] | Sequence[Served] | Sequence[dict[str, Any]]) -> Path:
    """Write rows in the format that the name of a file says."""
    records = [row if isinstance(row, dict) else asdict(row) for row in rows]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    elif path.suffix == ".ndjson":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            mark = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(file, list(records[0]), delimiter=mark)
            writer.writeheader()
            writer.writerows(records)
    return path
