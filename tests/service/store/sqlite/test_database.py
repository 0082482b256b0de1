"""Flushes and checkpoints: the WAL stays short, and nobody waits for either."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebrank.service.store.sqlite import SqliteStore, database
from ebrank.service.store.sqlite.database import Database, Wal
from ebrank.testing.histories import new_items, ranking
from tests.service.store.blocking import Blocking, run


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Blocking]:
    monkeypatch.setattr(database, "INTERVAL_SECONDS", 3600.0)  # the tests checkpoint themselves
    opened = Blocking(SqliteStore(tmp_path / "store"))
    opened.items.put("q", new_items(*"abc"), 1.0)
    yield opened
    opened.close()


def fill(store: Blocking, begin: int, count: int) -> None:
    for number in range(begin, begin + count):
        store.log.write([ranking(f"r{number}", "abc")])


def wal_of(store: Blocking) -> Wal:
    database = store.wrapped.database
    assert isinstance(database, Database)
    return database._wal


def wal_size(store: Blocking) -> int:
    return int(store.database.path.with_name("log.db-wal").stat().st_size)


def test_a_long_wal_is_used_from_its_start_again_though_others_write(
    store: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LIMIT_PAGES", 50)
    fill(store, 0, 100)
    size, checkpoints = wal_size(store), wal_of(store)
    passive = checkpoints._passive
    calls: list[int] = []

    def first_incomplete_then_complete() -> int:
        calls.append(len(calls))
        if calls[-1] % 2:
            return passive()
        reader = SqliteStore(store.database.path, "read")
        try:  # what comes now is not copied: somebody reads
            fill(store, 5000 + calls[-1], 1)
            return passive()
        finally:
            run(reader.close())

    monkeypatch.setattr(checkpoints, "_passive", first_incomplete_then_complete)
    for portion in range(1, 11):
        checkpoints.checkpoint()
        fill(store, 100 * portion, 40)
    assert len(calls) == 20
    assert wal_size(store) < size + 20 * 4096
    assert len(store.log.entries()) == 100 + 10 * 41


def test_a_reader_keeps_its_view_while_the_wal_is_checkpointed(
    store: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LIMIT_PAGES", 10)
    fill(store, 0, 50)
    view = Blocking(SqliteStore(store.database.path, "read"))
    fill(store, 50, 50)
    wal_of(store).checkpoint()
    store.log.roll_up(1000.0)
    assert len(view.log.entries()) == 50
    view.close()
    assert store.log.entries() == []


def test_others_write_during_a_flush(store: Blocking, monkeypatch: pytest.MonkeyPatch) -> None:
    began, sign = threading.Event(), threading.Event()
    flush = os.fdatasync

    def slow(file: int) -> None:
        began.set()
        assert sign.wait(timeout=10)
        flush(file)

    async def session() -> None:
        flushing = asyncio.create_task(store.wrapped.flush())
        await asyncio.to_thread(began.wait, 10)
        await store.wrapped.log.write([ranking("meanwhile", "abc")])
        assert await store.wrapped.log.ranking("meanwhile") is not None
        assert not flushing.done()
        sign.set()
        await flushing

    monkeypatch.setattr(os, "fdatasync", slow)
    run(session())
    monkeypatch.undo()


def test_only_a_flush_flushes(store: Blocking, monkeypatch: pytest.MonkeyPatch) -> None:
    flushes: list[int] = []
    monkeypatch.setattr(os, "fdatasync", flushes.append)
    store.log.write([ranking("r1", "abc")])
    store.items.put("q", new_items("d"), 2.0)
    store.items.withdraw("q", "d", 3.0)
    store.meta.set({"key": "value"})
    assert flushes == []
    store.flush()
    assert len(flushes) == 1
