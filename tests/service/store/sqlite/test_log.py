"""Writing with hints: the same log and counts as without, and a wrong one is refused."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from ebrank.service.store.records import EventEntry, Hint
from ebrank.service.store.sqlite import SqliteStore, database
from ebrank.service.store.sqlite.database import make_tables
from ebrank.service.store.sqlite.driver import matching
from ebrank.service.store.tables import ITEMS
from tests.service.histories import contents, event, new_items, ranking
from tests.service.store.blocking import Blocking, run


def stored(folder: Path) -> Blocking:
    store = Blocking(SqliteStore(folder))
    store.items.put("q", new_items(*"abc"), 1.0)
    return store


def test_hints_change_nothing_but_the_work(tmp_path: Path) -> None:
    listed = ranking("r", "cab", counted=False)
    click = event("e", listed, "a", shows=True)
    hinted = [
        replace(listed, hint=Hint((2, 0, 1), (True,) * 3)),
        replace(click, hint=Hint((0,), (True,))),
    ]
    without, with_hints = stored(tmp_path / "without"), stored(tmp_path / "with")
    assert without.log.write([listed, click]) == with_hints.log.write(hinted)
    assert run(contents(without.wrapped)) == run(contents(with_hints.wrapped))
    assert with_hints.items.load("q").first_shown.tolist()[0] == click.received
    without.close()
    with_hints.close()


def test_a_hint_for_other_items_is_refused(tmp_path: Path) -> None:
    store = stored(tmp_path / "store")
    before = run(contents(store.wrapped))
    with pytest.raises(ValueError, match="a hint of 1 places for other items"):
        store.log.write([ranking("r", "ab", hint=Hint((0,), (True,)))])
    assert run(contents(store.wrapped)) == before
    store.close()


def test_a_list_of_nothing_is_logged(tmp_path: Path) -> None:
    store = stored(tmp_path / "store")
    assert [one.status for one in store.log.write([ranking("r", "")]).written] == ["accepted"]
    assert store.log.ranking("r").items == ()
    store.close()


def test_events_of_a_query_lie_side_by_side_whatever_their_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page that a batch touches is written to the WAL: random ids must not scatter it."""
    monkeypatch.setattr(database, "INTERVAL_SECONDS", 3600.0)  # the WAL only grows
    store, chance = Blocking(SqliteStore(tmp_path / "store")), random.Random(1)
    queries = [f"q{number}" for number in range(40)]
    wal = tmp_path / "store" / "log.db-wal"
    for query in queries:
        store.items.put(query, new_items(*"abcdefghij"), 1.0)

    def clicks(query: str, lists: int) -> list[EventEntry]:
        names = [f"{query}-{chance.getrandbits(64):x}" for _ in range(lists)]
        served = [ranking(name, "abcdefghij", query=query) for name in names]
        store.log.write(served)
        ids = (f"{chance.getrandbits(128):032x}" for _ in range(10 * lists))
        return [event(next(ids), one, item) for one in served for item in one.items]

    for query in queries:
        store.log.write(clicks(query, lists=10))
    batch = clicks(queries[7], lists=10)
    before = wal.stat().st_size
    store.log.write(batch)
    assert (wal.stat().st_size - before) / database.PAGE_BYTES < 30
    store.close()


def test_a_few_items_are_found_without_reading_all() -> None:
    connection, size, steps = sqlite3.connect(":memory:"), 1000, 0
    make_tables(connection)
    connection.executemany(
        "INSERT INTO items VALUES (7, ?, ?, 0, 1, NULL)",
        [(place, f"item {place}") for place in range(size)],
    )

    def found(names: list[str]) -> list[tuple[object, ...]]:
        keys = [(7, name) for name in names]
        return matching(connection, ITEMS, ("id", "place"), (("query", "id"),), keys)

    def count() -> None:
        nonlocal steps
        steps += 1

    some = found(["item 900", "no such", "item 3"])
    assert sorted(some) == [("item 3", 3), ("item 900", 900)]
    connection.set_progress_handler(count, 1)  # at every instruction of SQLite's machine
    names = [f"item {place}" for place in range(0, size, 100)]
    assert len(found(names)) == len(names)
    assert steps < size
