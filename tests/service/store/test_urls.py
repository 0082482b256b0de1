"""Where a store is, in one line of text; a store of one's own needs nothing but its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebrank.service.store import Mode, StoreError, open
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from ebrank.service.store.sqlite import SqliteStore
from tests.postgres import Postgres
from tests.service.histories import contents, fill, ranking

ITEMS = [NewItem("a", (1.0,))]


async def filled(url: str, mode: Mode = "serve") -> str:
    """Put an item; return the kind of store."""
    async with open(url, mode) as store:
        await store.items.put("q", ITEMS, 1.0)
        return type(store).__name__


async def queries(url: str) -> list[str]:
    async with open(url, "read") as store:
        return await store.items.queries()


async def test_a_path_is_a_folder_and_so_is_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("plain", "./odd:name", str(tmp_path / "whole"), "sqlite:named"):
        assert await filled(url) == SqliteStore.__name__
        assert await queries(url) == ["q"]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"named", "odd:name", "plain", "whole"}


async def test_a_store_in_memory_begins_empty() -> None:
    assert await filled("memory:") == MemoryStore.__name__
    assert await queries("memory:") == []


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
async def test_what_means_no_store_is_told(url: str, told: str) -> None:
    with pytest.raises(StoreError, match=told):
        await filled(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path, database: Postgres) -> str:
    """The URL of a store that is not there yet, on a disk of its own or of others."""
    here = str(tmp_path / "store")
    return here if request.param == "sqlite" else database.url(f"new {tmp_path.name}")


async def test_a_new_store_appears_when_it_is_complete(place: str, tmp_path: Path) -> None:
    async def broken() -> None:
        async with open(place, "new") as store:
            await fill(store)
            assert not Path(place).exists()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await broken()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError, match="no store"):
        await queries(place)
    async with open(place, "new") as store:
        await fill(store)
        before = await contents(store)
        with pytest.raises(StoreError, match="nothing was stored"):
            await store.log.write([ranking("r", "a", query="nothing")])
    assert [path.name for path in tmp_path.iterdir()] in ([], ["store"])
    async with open(place, "read") as store:
        assert await contents(store) == before
        with pytest.raises(StoreError, match="opened to be read"):
            await store.meta.set({"a": "b"})
    with pytest.raises(StoreError, match=r"already exists|there is a store already"):
        await filled(place, "new")


async def test_a_store_is_read_as_it_was_and_browsed_as_it_is(place: str) -> None:
    async with open(place) as server:
        await server.meta.set({"features": "1"})
        async with open(place, "read") as reader, open(place, "browse") as browser:
            await server.meta.set({"features": "2"})
            assert await reader.meta.get("features") == "1"
            assert await browser.meta.get("features") == "2"
        async with open(place, "read") as reader:
            assert await reader.meta.get("features") == "2"
