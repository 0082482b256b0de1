"""Where a store is, in one line of text; a store of one's own needs nothing but its name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ebrank.service.store import Mode, StoreError, open
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from ebrank.service.store.sqlite import SqliteStore
from ebrank.testing import check_store

ITEMS = [NewItem("a", (1.0,))]


async def filled(url: str, mode: Mode = "serve") -> str:
    """Put an item; return the kind of store."""
    async with open(url, mode) as store:
        await store.items.put("q", ITEMS, 1.0)
        return type(store).__name__


async def queries(url: str) -> list[str]:
    async with open(url, "read") as store:
        return await store.items.queries()


def test_a_path_is_a_folder_and_so_is_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("plain", "./odd:name", str(tmp_path / "whole"), "sqlite:named"):
        assert asyncio.run(filled(url)) == SqliteStore.__name__
        assert asyncio.run(queries(url)) == ["q"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "named",
        "odd:name",
        "plain",
        "whole",
    ]


def test_a_store_in_memory_begins_empty() -> None:
    assert asyncio.run(filled("memory:")) == MemoryStore.__name__
    assert asyncio.run(queries("memory:")) == []


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (
            "postgres:server",
            r"no such kind of store\. Write sqlite:…, postgresql:…, memory:…, .*a path as \./",
        ),
        ("no.such.module:Store:x", "No module named 'no'.*PYTHONPATH"),
        ("ebrank.service.store.memory:NoStore:x", "has no attribute 'NoStore'"),
    ],
)
def test_what_means_no_store_is_told(url: str, told: str) -> None:
    with pytest.raises(StoreError, match=told):
        asyncio.run(filled(url))


OWN = '''
"""A store of one's own: the one in memory, under a name that lasts as long as the process."""

from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore

KEPT = {}

async def open_kept(name, mode):
    if mode == "read" and name not in KEPT:
        raise StoreError(f"{name}: there is none")
    return KEPT.setdefault(name, MemoryStore())
'''


@pytest.mark.slow
def test_a_store_of_ones_own_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_stores.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    assert asyncio.run(filled("my_stores:open_kept:here")) == MemoryStore.__name__
    assert asyncio.run(queries("my_stores:open_kept:here")) == ["q"]
    with pytest.raises(StoreError, match="there: there is none"):
        asyncio.run(queries("my_stores:open_kept:there"))
    check_store(lambda name: open(f"my_stores:open_kept:{name}"))


def test_a_new_store_appears_when_it_is_complete(tmp_path: Path) -> None:
    place = tmp_path / "store"

    async def broken() -> None:
        async with open(str(place), "new") as store:
            await store.items.put("q", ITEMS, 1.0)
            assert not place.exists()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(broken())
    assert list(tmp_path.iterdir()) == []
    asyncio.run(filled(str(place), "new"))
    assert asyncio.run(queries(str(place))) == ["q"]
    assert list(tmp_path.iterdir()) == [place]
    with pytest.raises(StoreError, match="there is something already"):
        asyncio.run(filled(str(place), "new"))


def test_a_store_is_read_as_it_was_when_it_was_opened(tmp_path: Path) -> None:
    async def session() -> None:
        async with open(str(tmp_path)) as server:
            async with open(str(tmp_path), "read") as reader:
                await server.meta.set({"features": "2"})
                assert await reader.meta.get("features") is None
                assert await server.meta.get("features") == "2"
            async with open(str(tmp_path), "read") as reader:
                assert await reader.meta.get("features") == "2"

    asyncio.run(session())
