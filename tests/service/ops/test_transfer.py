"""Exports: complete, the same after a round trip, and honest about damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebrank.errors import DataError
from ebrank.service.api import ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.ops.replay import replay
from ebrank.service.ops.transfer import copying, exporting
from ebrank.service.ops.transfer.copying import import_store
from ebrank.service.ops.transfer.exported import Exported
from ebrank.service.ops.transfer.exporting import export
from ebrank.service.settings import Settings
from ebrank.service.store import open as open_store
from ebrank.service.store.base import SALT, Store, StoreError, hashed
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import ArmSums, EventEntry, Minute, ModelRecord, RankingEntry
from ebrank.service.store.sqlite import SqliteStore
from ebrank.testing.histories import contents, fill, new_items
from tests.service.store.blocking import run


async def fill_all(store: Store) -> None:
    """Write a history, half of it rolled up, with models, minutes and settings."""
    await fill(store)
    await store.log.roll_up(30.5)  # the ranking r2 is rolled up, its events are not
    minutes = [Minute(60.0, {"clicks": 1.0, "cost": 0.1}), Minute(120.0, {"clicks": 2.0})]
    arms = [ArmSums("t", 1, "a", 7, 3, 2, 0.5, 1), ArmSums("t", 2, "b", 9, 1, 0, 0.0, 0)]
    await store.meta.set({"features": '["☂"]'}, minutes, arms)
    await store.models.add(ModelRecord(1, 5.0, 10, None, 0.5, activated=True), b"one\0")
    second = ModelRecord(2, 6.0, 20, 0.4, 0.3, activated=True, reason="fine")
    await store.models.add(second, b"two", {"auto": "three"})
    await store.models.activate(1)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store and its export, to copy."""
    folder = tmp_path_factory.mktemp("begun")
    opened = SqliteStore(folder / "store")
    run(fill_all(opened))
    run(export(opened, folder / "export"))
    run(opened.close())
    return folder


@pytest.fixture
def store(begun: Path, tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(shutil.copytree(begun / "store", tmp_path / "store"))
    yield opened
    run(opened.close())


@pytest.fixture
def folder(begun: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(begun / "export", tmp_path / "export"))


def test_a_round_trip_gives_the_same_store_and_the_same_rows(
    store: SqliteStore, folder: Path, tmp_path: Path
) -> None:
    run(import_store(Exported(folder), str(tmp_path / "copy")))
    copy = SqliteStore(tmp_path / "copy")
    assert run(contents(copy)) == run(contents(store))
    assert run(replay(copy)).equal
    run(export(copy, tmp_path / "again"))
    run(copy.close())
    for name in exporting.TABLES:
        file = f"{name}.parquet"
        assert (tmp_path / "again" / file).read_bytes() == (folder / file).read_bytes(), name
    assert (tmp_path / "again/export.json").read_text() == (folder / "export.json").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "copy", "export", "store"]


def test_an_export_is_replayed_like_its_store(store: SqliteStore, folder: Path) -> None:
    report = run(replay(Exported(folder)))
    assert report == run(replay(store))
    assert run(contents(Exported(folder))) == run(contents(store))
    assert (report.queries, report.items, report.rankings, report.events) == (2, 5, 1, 4)


def test_names_of_users_cannot_be_found_from_an_export(tmp_path: Path) -> None:
    """Whoever has the export may hash all names there are: it holds no salt to do it with."""

    async def session() -> tuple[str, str]:
        async with open_store(str(tmp_path / "store")) as store:
            engine = await Engine.open(store, Settings())
            await engine.put_items("tea", [ItemIn("green", [1.0])])
            await engine.rank(RankRequest("tea", user="ada@example.org"))
            await engine.close()
            await export(store, tmp_path / "export")
            salt = await store.meta.get(SALT)
        assert salt is not None
        for path in (tmp_path / "export").iterdir():
            assert salt.encode() not in path.read_bytes(), path.name
        exported = Exported(tmp_path / "export")
        assert SALT not in await exported.meta.all()
        [entry] = [entry async for entry in exported.log.entries()]
        assert isinstance(entry, RankingEntry)
        assert entry.user == hashed("ada@example.org", salt)
        await import_store(exported, str(tmp_path / "copy"))
        async with open_store(str(tmp_path / "copy")) as copy:
            await (await Engine.open(copy, Settings())).close()
            fresh = await copy.meta.get(SALT)
        assert fresh is not None
        return salt, fresh

    salt, fresh = run(session())
    assert salt != fresh, "a user who comes back is another one"


def test_a_row_holds_what_was_logged(store: SqliteStore, folder: Path) -> None:
    rows = pq.read_table(folder / "events.parquet").to_pylist()
    first = next(entry for entry in run(store.log.entries()) if isinstance(entry, EventEntry))
    logged = {one.name: getattr(first, one.name) for one in fields(first) if one.compare}
    assert rows[0] == {"position": 0} | logged


def test_an_empty_store_goes_round(tmp_path: Path) -> None:
    with_nothing = SqliteStore(tmp_path / "store")
    assert set(run(export(with_nothing, tmp_path / "export")).values()) == {0}
    run(with_nothing.close())
    run(import_store(Exported(tmp_path / "export"), str(tmp_path / "copy")))
    assert run(replay(Exported(tmp_path / "export"))).equal


def test_groups_of_rows_may_end_within_a_query(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(copying, "ENTRIES_AT_ONCE", 2)
    run(store.items.put("third", new_items("x", "y", "z"), 80.0))
    run(export(store, tmp_path / "small"))
    monkeypatch.setattr(exporting, "ROWS_AT_ONCE", 3)
    run(export(store, tmp_path / "larger"))
    for name in ("small", "larger"):
        memory = MemoryStore()
        run(copying.fill(memory, Exported(tmp_path / name)))
        assert run(contents(memory)) == run(contents(store))


def test_progress_is_told(store: SqliteStore, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    run(export(store, tmp_path / "export", progress))
    run(import_store(Exported(tmp_path / "export"), str(tmp_path / "copy"), progress))
    assert told == [(0, 5), (0, 5)]


# --- what is refused ---------------------------------------------------------------------------


def test_neither_export_nor_import_overwrites(store: SqliteStore, folder: Path) -> None:
    with pytest.raises(StoreError, match="not empty"):
        run(export(store, folder))
    with pytest.raises(StoreError, match="a file, not a folder"):
        run(export(store, folder / "items.parquet"))
    with pytest.raises(StoreError, match="already exists"):
        run(import_store(Exported(folder), str(folder)))


def rewrite(path: Path, change: dict[str, object], row: int = 0) -> None:
    """Change some columns of a row of a table."""
    rows = pq.read_table(path).to_pylist()
    rows[row] |= change
    pq.write_table(pa.Table.from_pylist(rows, exporting.schema(path.stem)), path)


@pytest.mark.parametrize(
    ("table", "change", "why"),
    [
        ("evidence", {"count": 7}, "contradicts itself: query 'q' is not the same in the copy"),
        ("evidence", {"item": "zz"}, "has a count of something unknown"),
        ("snapshot", {"slot": 16}, "query 'q': a count has an impossible item, outcome or slot"),
        ("events", {"position": 17}, "entry 0 of the log is missing"),
        ("events", {"event_id": "e5"}, "contains an event twice"),
        ("items", {"query": "other query ☂"}, "stands at two places"),
    ],
)
def test_an_export_that_contradicts_itself_makes_no_store(
    folder: Path, tmp_path: Path, table: str, change: dict[str, object], why: str
) -> None:
    rewrite(folder / f"{table}.parquet", change)
    with pytest.raises(DataError, match=why):
        run(import_store(Exported(folder), str(tmp_path / "copy")))
    assert [path.name for path in tmp_path.iterdir()] == ["export"]


def test_replay_tells_what_differs(folder: Path) -> None:
    rows = pq.read_table(folder / "evidence.parquet").to_pylist()
    clicked = next(n for n, row in enumerate(rows) if row["item"] == "b" and row["outcome"])
    rewrite(folder / "evidence.parquet", {"count": 9}, row=clicked)
    rewrite(folder / "items.parquet", {"first_shown": 5.0}, row=4)
    report = run(replay(Exported(folder)))
    assert not report.equal
    assert [str(one) for one in report.differences] == [
        "query 'q', item 'b': count of outcome 1 in slot 1 is 9, the log gives 1",
        "query 'other query ☂', item 'ä': first_shown is 5.0, the log gives 50.0",
    ]


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (None, "no complete export"),
        ("{", "damaged export"),
        ("[]", "Expected `object`, got `array`"),
        ({"format": "csv"}, r"Invalid enum value 'csv' - at `\$.format`"),
        ('{"format": "\xff"}', "damaged export: 'utf-8' codec can't decode"),
        ("{}", "Object missing required field `format`"),
        ('{"format": "ebrank export"}', "Object missing required field `version`"),
        ('{"format": "ebrank export", "version": 5}', "version 5, this ebrank knows 4. Upgrade"),
        ({"version": 3}, "version 3, this ebrank knows 4. Import it with the ebrank that wrote it"),
        ({"rows": 5}, r"Expected `object`, got `int` - at `\$.rows`"),
        ({"rows": {}}, "5 rows, export.json says otherwise"),
    ],
)
def test_a_bad_manifest_is_told(
    folder: Path, manifest: str | dict[str, object] | None, why: str
) -> None:
    path = folder / "export.json"
    document = json.loads(path.read_text())
    path.unlink()
    if isinstance(manifest, str):
        path.write_text(manifest, encoding="latin-1")
    elif manifest is not None:
        path.write_text(json.dumps(document | manifest))
    with pytest.raises(DataError, match=why):
        Exported(folder)


def test_a_table_that_is_absent_cut_or_foreign_is_told(folder: Path) -> None:
    path = folder / "rankings.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"rankings\.parquet: a damaged export"):
        Exported(folder)
    path.unlink()
    with pytest.raises(DataError, match=r"rankings\.parquet: a damaged export"):
        Exported(folder)
    path.write_bytes((folder / "minutes.parquet").read_bytes())
    with pytest.raises(DataError, match="its columns are not those"):
        Exported(folder)


def test_a_table_with_damaged_bytes_is_told(folder: Path) -> None:
    for table in ("rankings", "snapshot"):
        path = folder / f"{table}.parquet"
        whole = path.read_bytes()
        place = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
        path.write_bytes(whole[:place] + b"\xff" * 8 + whole[place + 8 :])
        with pytest.raises(DataError, match=rf"{table}\.parquet: a damaged export"):
            run(replay(Exported(folder)))
        path.write_bytes(whole)
