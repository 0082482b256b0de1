"""Deletions that are interrupted: by the end of the process, or while a roll-up goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ebrank.service.store import open
from ebrank.service.store.records import Deletion
from ebrank.service.store.sqlite import SqliteStore
from ebrank.service.store.sqlite.driver import SqliteDriver
from ebrank.testing.histories import fill
from ebrank.testing.stores.checking import log_of


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


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteDriver, "portion", 1)


async def test_the_next_start_finishes_the_deletion_of_a_query(tmp_path: Path) -> None:
    store = await interrupted(tmp_path / "store", kind="query")
    await store.log.roll_up(65.0)  # entries of the query are rolled up, and nobody wants them
    assert await store.faults() != []
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
