"""Exports: complete, without the salt, and never over anything else."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ebrank.addons import exporting
from ebrank.addons.exporting import export
from ebrank.service.api import ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.settings import Settings
from ebrank.service.store.base import SALT, StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, Operation
from tests.service.histories import counts, new_items
from tests.service.ops.test_copying import fill_all

DOCS = Path(__file__).parents[2] / "docs" / "store.md"


def read(folder: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return rows


def plain(entry: Operation) -> dict[str, Any]:
    """Return the fields of an entry that are logged, as Parquet gives them back."""
    values = {field.name: getattr(entry, field.name) for field in fields(entry) if field.compare}
    return {name: list(cell) if isinstance(cell, tuple) else cell for name, cell in values.items()}


async def test_an_export_holds_what_the_store_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    await fill_all(store)
    monkeypatch.setattr(exporting, "ROWS_AT_ONCE", 3)
    await store.items.put("third", new_items("x", "y", "z"), 80.0)
    told: list[tuple[int, int]] = []
    rows = await export(store, tmp_path, lambda *now: told.append(now))
    assert told == [(0, 5)]
    assert rows == {table: len(read(tmp_path, table)) for table in exporting.TABLES}
    queries = await store.items.queries()
    assert [(row["query"], row["item"]) for row in read(tmp_path, "items")] == [
        (query, item) for query in queries for item in counts(await store.items.load(query))
    ]
    for table, of_query in ("evidence", store.items.load), ("snapshot", store.items.snapshot):
        held = {query: counts(await of_query(query)) for query in queries}
        for row in read(tmp_path, table):
            if row["count"]:
                item = held[row["query"]][row["item"]]
                assert item.pop((row["outcome"], row["slot"] + 1)) == row["count"]
        assert not any(item for items in held.values() for item in items.values())
    entries = {"rankings": read(tmp_path, "rankings"), "events": read(tmp_path, "events")}
    for position, entry in enumerate([entry async for entry in store.log.entries()]):
        row = entries["events" if isinstance(entry, EventEntry) else "rankings"].pop(0)
        assert row == {"position": position} | plain(entry)
    assert [row["version"] for row in read(tmp_path, "models")] == [1, 2]
    assert [row["document"] for row in read(tmp_path, "models")] == [b"one\0", b"two"]
    manifest = json.loads((tmp_path / "export.json").read_bytes())
    assert manifest["settings"] == await store.meta.all()
    assert (manifest["active_model"], manifest["rows"]) == (1, rows)


async def test_names_of_users_cannot_be_found_from_an_export(tmp_path: Path) -> None:
    """Whoever has the export may hash all names there are: it holds no salt to do it with."""
    store = MemoryStore()
    engine = await Engine.open(store, Settings())
    await engine.put_items("tea", [ItemIn("green", [1.0])])
    await engine.rank(RankRequest("tea", user="ada@example.org"))
    await engine.close()
    await export(store, tmp_path / "export")
    salt = await store.meta.get(SALT)
    assert salt is not None
    for path in (tmp_path / "export").iterdir():
        assert salt.encode() not in path.read_bytes(), path.name
        assert b"ada@example.org" not in path.read_bytes(), path.name


async def test_nothing_is_overwritten_and_nothing_makes_an_empty_export(tmp_path: Path) -> None:
    assert set((await export(MemoryStore(), tmp_path / "export")).values()) == {0}
    with pytest.raises(StoreError, match="not empty"):
        await export(MemoryStore(), tmp_path / "export")
    with pytest.raises(StoreError, match="a file, not a folder"):
        await export(MemoryStore(), tmp_path / "export" / "items.parquet")


def test_the_docs_name_the_columns_of_an_export() -> None:
    docs = DOCS.read_text(encoding="utf-8")
    for table, columns in exporting.TABLES.items():
        pairs = (column.split(":") for column in columns)
        names = ", ".join(name + "?" * kind.endswith("?") for name, kind in pairs)
        assert f"| `{table}.parquet` | {names}" in docs
