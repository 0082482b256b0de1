"""Roll-ups and deletions in portions: interrupted between any two, nothing is lost or wrong.

`log.pause` is called between two portions, where others have their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ebrank.service.ops.replay import replay
from ebrank.service.store import Store, StoreError, open
from ebrank.service.store import log as rollup
from ebrank.service.store.records import (
    Deletion,
    Minute,
    NewItem,
    Operation,
    RankingEntry,
    RolledUp,
)
from ebrank.service.store.sqlite import SqliteStore
from ebrank.service.store.sqlite.driver import SqliteDriver
from tests.service.histories import bits, event, fill, ranking
from tests.service.store.blocking import run
from tests.service.store.checking import log_of


@contextmanager
def portions_of(size: int) -> Iterator[None]:
    """Roll up so many entries at a time, however long that takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollup, "FIRST_PORTION", size)
        patch.setattr(rollup, "next_portion", lambda portion, took: size)
        yield


@pytest.fixture(autouse=True)
def small_portions_of_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteDriver, "portion", 1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path)
    yield opened
    run(opened.close())


async def in_the_log(store: Store) -> list[Operation]:
    """Return the log, of which counters are the sum, with the snapshot."""
    assert (await replay(store)).equal
    return await log_of(store)


@pytest.mark.parametrize("portions", range(1, 5))
async def test_an_interrupted_roll_up_is_continued(store: SqliteStore, portions: int) -> None:
    log, current = await fill(store), bits(await store.items.load("q"))
    left = iter(range(portions - 1))

    async def die_after_some(seconds: float) -> None:
        if next(left, None) is None:
            raise ZeroDivisionError

    store.log.pause = die_after_some
    with portions_of(2), pytest.raises(ZeroDivisionError):
        await store.log.roll_up(1000.0)
    await store.close()
    async with open(str(store.database.path.parent)) as again:
        assert await in_the_log(again) == log[2 * portions :]
        await again.log.roll_up(1000.0)
        assert await in_the_log(again) == []
        rolled, now = await again.items.snapshot("q"), await again.items.load("q")
        assert bits(rolled) == bits(now) == current


async def test_others_write_between_portions(store: SqliteStore) -> None:
    await fill(store)
    written: list[RankingEntry] = []

    async def write(seconds: float) -> None:
        written.append(ranking(f"new-{len(written)}", "abc", time=100.0))
        clicked = event(f"of-{written[-1].id}", written[-1], "a", time=100.0)
        await store.log.write([written[-1], clicked])

    store.log.pause = write
    with portions_of(1):
        assert await store.log.roll_up(90.0) == RolledUp(3, 5)
    assert len(written) == 8
    assert len(await in_the_log(store)) == 2 * len(written)


async def test_closing_waits_for_a_portion_and_no_longer(store: SqliteStore) -> None:
    log = await fill(store)
    store.log.pause = lambda seconds: store.close()
    with portions_of(1), pytest.raises(StoreError, match="the store is closed"):
        await store.log.roll_up(1000.0)
    async with open(str(store.database.path.parent)) as again:
        assert await in_the_log(again) == log[1:]


async def test_a_backlog_is_rolled_up_in_small_portions(store: SqliteStore) -> None:
    items = tuple(f"i{at}" for at in range(10))
    lengths: list[int] = []

    async def count(seconds: float) -> None:
        lengths.append(await store.log.length())

    await store.items.put("q", [NewItem(item, (1.0,)) for item in items], 0.0)
    await store.log.write([RankingEntry(f"r{at}", "q", 1.0, 0, items) for at in range(1000)])
    store.log.pause = count
    assert await store.log.roll_up(1000.0) == RolledUp(1000, 0)
    portions = [before - after for before, after in zip([1000, *lengths], lengths, strict=False)]
    assert portions[0] == rollup.FIRST_PORTION
    assert max(portions) <= rollup.MOST_PORTION


async def test_a_pause_is_many_times_as_long_as_a_portion(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    times, pauses = iter((10.0, 10.5)), list[float]()

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    await store.meta.set({}, [Minute(0.0, {"rankings": 1.0})])
    store.log.pause = note
    monkeypatch.setattr(rollup, "PAUSE", 9.0)
    monkeypatch.setattr("time.perf_counter", lambda: next(times, 11.0))
    await store.log.roll_up(60.0)
    monkeypatch.undo()
    assert pauses == [4.5]


async def test_many_old_minutes_are_dropped_a_few_at_a_time(store: SqliteStore) -> None:
    left: list[int] = []

    async def count(seconds: float) -> None:
        left.append(len(await store.meta.minutes(0.0)))

    await store.meta.set({}, [Minute(60.0 * at, {"rankings": 1.0}) for at in range(35)])
    store.log.pause = count
    await store.log.roll_up(0.0, minutes_before=60.0 * 30)
    assert left == [25, 15, 5]


# --- deletions ------------------------------------------------------------------------------------


async def interrupted(folder: Path, *, kind: str) -> SqliteStore:
    """Return a store with a deletion that stopped after its first portion."""
    store = SqliteStore(folder)
    await fill(store)
    call = store.deletions.query if kind == "query" else store.deletions.user
    deleting = asyncio.create_task(call("q" if kind == "query" else "u", "digest", 90.0))
    await asyncio.sleep(0)
    deleting.cancel()
    await asyncio.wait([deleting])
    assert deleting.cancelled()
    return store


async def test_the_next_start_finishes_the_deletion_of_a_query(tmp_path: Path) -> None:
    store = await interrupted(tmp_path / "store", kind="query")
    await store.log.roll_up(65.0)  # entries of the query are rolled up, and nobody wants them
    assert await store.faults() == []
    await store.close()
    async with open(str(tmp_path / "store")) as again:
        assert await again.faults() == []
        assert {entry.query for entry in await log_of(again)} <= {"other query ☂"}
        [proof] = await again.deletions.all()
        assert (proof.kind, proof.digest, proof.queries) == ("query", "digest", 1)
        assert await again.deletions.query("q", "digest", 91.0) is None


async def test_the_next_start_finishes_the_deletion_of_a_user(tmp_path: Path) -> None:
    await (await interrupted(tmp_path / "store", kind="user")).close()
    async with open(str(tmp_path / "store")) as store:
        assert {getattr(entry, "user", None) for entry in await log_of(store)} == {None}
        assert await store.deletions.all() == [Deletion(90.0, "user", "digest", rankings=1)]
