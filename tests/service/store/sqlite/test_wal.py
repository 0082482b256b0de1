"""Flushes and checkpoints: the WAL stays short, and nobody waits for either."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebrank.service.store.sqlite import SqliteStore, wal
from ebrank.service.store.sqlite.view import SqliteView
from tests.service.store.samples import new_items, ranking, write


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    monkeypatch.setattr(wal, "INTERVAL_SECONDS", 3600.0)  # the tests checkpoint themselves
    opened = SqliteStore(tmp_path / "store")
    opened.put_items("q", new_items(*"abc"), 1.0)
    yield opened
    opened.close()


def fill(store: SqliteStore, begin: int, count: int) -> None:
    for number in range(begin, begin + count):
        write(store, [ranking(f"r{number}", "abc")])


def test_a_long_wal_is_used_from_its_start_again_though_others_write(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "LIMIT_PAGES", 50)
    fill(store, 0, 100)
    size = store.path.with_name("log.db-wal").stat().st_size
    passive = store._wal._passive
    calls: list[int] = []

    def first_incomplete_then_complete() -> int:
        calls.append(len(calls))
        if calls[-1] % 2:
            return passive()
        with SqliteView(store.path.parent):  # what comes now is not copied: somebody reads
            fill(store, 5000 + calls[-1], 1)
            return passive()

    monkeypatch.setattr(store._wal, "_passive", first_incomplete_then_complete)
    for portion in range(1, 11):
        store._wal.checkpoint()
        fill(store, 100 * portion, 40)
    assert len(calls) == 20
    assert store.path.with_name("log.db-wal").stat().st_size < size + 20 * 4096
    assert len(list(store.log())) == 100 + 10 * 41


def test_a_reader_keeps_its_view_while_the_wal_is_checkpointed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "LIMIT_PAGES", 10)
    fill(store, 0, 50)
    with SqliteView(store.path.parent) as view:
        fill(store, 50, 50)
        store._wal.checkpoint()
        store.roll_up(1000.0)
        assert len(list(view.log())) == 50
    assert list(store.log()) == []


def test_others_write_during_a_flush(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    began, sign = threading.Event(), threading.Event()
    flush = os.fdatasync

    def slow(file: int) -> None:
        began.set()
        assert sign.wait(timeout=10)
        flush(file)

    monkeypatch.setattr(os, "fdatasync", slow)
    thread = threading.Thread(target=store.flush)
    thread.start()
    assert began.wait(timeout=10)
    write(store, [ranking("meanwhile", "abc")])
    assert store.ranking("meanwhile") is not None
    assert thread.is_alive()
    sign.set()
    thread.join(timeout=10)


def test_a_write_that_asks_for_it_is_flushed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushes: list[int] = []
    monkeypatch.setattr(os, "fdatasync", flushes.append)
    store.write([ranking("r1", "abc")], flush=False)
    assert flushes == []
    store.write([ranking("r2", "abc")], flush=True)
    assert len(flushes) == 1
    store.put_items("q", new_items("d"), 2.0)
    store.withdraw("q", "d", 3.0)
    store.set_meta("key", "value")
    assert len(flushes) == 4
