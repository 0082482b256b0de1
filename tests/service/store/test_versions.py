"""Stores of earlier versions: refused until they are migrated, and then as they were."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from ebrank.addons.postgresql import database as postgresql
from ebrank.addons.postgresql.database import Address, quoted
from ebrank.addons.postgresql.schema import POSTGRESQL
from ebrank.service.api import RankRequest, StartExperimentRequest
from ebrank.service.engine import Engine
from ebrank.service.ops.check import check
from ebrank.service.ops.replay import replay
from ebrank.service.store import Mode, StoreError, open
from ebrank.service.store.schema import MIGRATION, SQLITE
from ebrank.service.store.sqlite import database as sqlite
from ebrank.service.store.urls import migrated
from tests.postgres import Postgres
from tests.service.scenes import Clock, click, ids
from tests.service.store.versions import make

VERSIONS = ["sqlite-6", "postgresql-4"]
NOW = [f"sqlite-{SQLITE.version}", f"postgresql-{POSTGRESQL.version}"]
CONTENTS = json.loads((make.HERE / "contents.json").read_text(encoding="utf-8"))


async def unpacked(version: str, database: Postgres, folder: Path) -> str:
    """Return the URL of a store of an earlier version."""
    if version.startswith("sqlite"):
        folder.mkdir()
        data = gzip.decompress((make.HERE / f"{version}.db.gz").read_bytes())
        (folder / "log.db").write_bytes(data)
        return str(folder)
    name = f"old {folder.parent.name}"
    url = database.url(name)
    connection = await asyncpg.connect(Address(url).dsn)
    await connection.execute("DROP SCHEMA IF EXISTS ebrank CASCADE")
    await connection.execute((make.HERE / f"{version}.sql").read_text(encoding="utf-8"))
    await connection.execute(f"ALTER SCHEMA ebrank RENAME TO {quoted(name)}")
    await connection.close()
    return url


async def columns(url: str) -> set[tuple[Any, ...]]:
    """Return the columns of a store's tables with types, how names are sorted, what is unique."""
    async with open(url, "read") as store, store.driver.read() as connection:
        if url.startswith("postgresql"):
            kinds = """SELECT table_name, column_name, data_type, is_nullable,
                CASE WHEN column_name IN ('name', 'id') THEN collation_name END
                FROM information_schema.columns WHERE table_schema = current_schema()"""
            keys = """SELECT relname, pg_get_constraintdef(c.oid) FROM pg_constraint AS c
                JOIN pg_class AS t ON t.oid = conrelid
                JOIN pg_namespace AS n ON n.oid = relnamespace
                WHERE nspname = current_schema()"""
        else:
            kinds = """SELECT m.name, c.name, c.type, c."notnull" OR c.pk, c.pk
                FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
                WHERE m.type = 'table'"""
            keys = "SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index'"
        return {tuple(row) for sql in (kinds, keys) for row in await connection.fetch(sql)}


@pytest.mark.parametrize("version", NOW)
async def test_a_store_of_this_version_is_opened_as_it_is(
    version: str, database: Postgres, tmp_path: Path
) -> None:
    """Tables that change without a new version would lock everybody out of stores in use."""
    url = await unpacked(version, database, tmp_path / "store")
    async with open(url, "read") as store:
        assert await make.contents(store) == CONTENTS
    new = database.url("new") if version.startswith("postgresql") else str(tmp_path / "new")
    async with open(new):
        pass
    assert await columns(url) >= await columns(new), "columns that are gone may remain"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_store_of_an_earlier_version_is_migrated_and_served(
    version: str, database: Postgres, tmp_path: Path
) -> None:
    url = await unpacked(version, database, tmp_path / "store")
    for mode in ("serve", "read", "browse"):
        with pytest.raises(StoreError, match="Run `ebrank store migrate` on it"):
            async with open(url, mode):
                pass
    done = await migrated(url)
    assert str(done.before) == version[-1]
    assert (await migrated(url)).before == done.now, "again does nothing"
    new = database.url("new") if version.startswith("postgresql") else str(tmp_path / "new")
    async with open(new):
        pass
    assert await columns(new) <= await columns(url)
    async with open(url, "read") as store:
        assert await make.contents(store) == CONTENTS
        assert (await replay(store)).equal
        assert await check(store, make.NOW) == []
    clock = Clock(make.NOW + 60.0)
    async with open(url) as store:
        engine = await Engine.open(store, make.RULES, clock=clock, timer=clock)
        answer = await engine.rank(RankRequest("tea", k=3))
        events = [click("new", answer.ranking_id, ids(answer)[0])]
        assert (await engine.feedback(events)).accepted == 1
        await engine.start_experiment(StartExperimentRequest("t", {"a": "auto", "b": "auto"}))
        answer = await engine.rank(RankRequest("tea", k=3))
        assert sum(arm.lists for arm in (await engine.experiment("t")).arms) == 1
        clock.now += 10 * make.DAY
        await engine._roll_up()
        assert [query async for query in store.deletions.expire(make.NOW + 1.0, 9)] == [
            "coffee",
            "grüner tee 🍵",
        ]
        await engine.close()
        assert (await replay(store)).equal
        assert await store.faults() == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_migration_that_fails_changes_nothing(
    version: str, database: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await unpacked(version, database, tmp_path / "store")
    number = version[-1]
    failing = (*MIGRATION, "INSERT INTO nowhere VALUES (1)")
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "SQLITE", SQLITE._replace(migration=failing))
        patch.setattr(postgresql, "POSTGRESQL", POSTGRESQL._replace(migration=failing))
        with pytest.raises(StoreError, match="nowhere"):
            await migrated(url)
    assert (await migrated(url)).before == int(number)
    async with open(url, "read") as store:
        assert await make.contents(store) == CONTENTS


async def test_two_migrations_of_a_database_at_once_are_one(
    database: Postgres, tmp_path: Path
) -> None:
    url = await unpacked("postgresql-4", database, tmp_path / "store")
    both = await asyncio.gather(migrated(url), migrated(url))
    assert sorted(done.before for done in both) == [4, POSTGRESQL.version]


def set_version(folder: Path, version: int) -> None:
    with closing(sqlite3.connect(folder / "log.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")


async def test_what_cannot_be_migrated_is_refused(tmp_path: Path) -> None:
    async with open(str(tmp_path / "store")):
        with pytest.raises(StoreError, match="another server is using this store"):
            await migrated(str(tmp_path / "store"))
    for version, told in ((SQLITE.version + 1, "Upgrade ebrank"), (1, "too old to migrate")):
        set_version(tmp_path / "store", version)
        with pytest.raises(StoreError, match=told):
            await migrated(str(tmp_path / "store"))
    with pytest.raises(StoreError, match="Put it into a new folder"):
        await migrated(str(tmp_path / "store/log.db"))
    with pytest.raises(StoreError, match="no versions of such a store"):
        await migrated("memory:")


@pytest.mark.parametrize("mode", ["serve", "read", "browse"])
async def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path, mode: Mode) -> None:
    async with open(str(tmp_path / "store")):
        pass
    file, newer = tmp_path / "store/log.db", SQLITE.version + 1
    set_version(tmp_path / "store", newer)
    before = file.read_bytes()
    told = f"a store of version {newer}; this ebrank reads version {SQLITE.version}. Upgrade ebrank"
    with pytest.raises(StoreError, match=told):
        async with open(str(tmp_path / "store"), mode):
            pass
    assert file.read_bytes() == before


async def test_tables_that_cannot_be_made_leave_an_empty_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def opened(mode: Mode) -> None:
        async with open(str(tmp_path / "store"), mode):
            pass

    with monkeypatch.context() as patch:
        broken = SQLITE._replace(done="INSERT INTO nowhere VALUES (1)")
        patch.setattr("ebrank.service.store.sqlite.database.SQLITE", broken)
        with pytest.raises(StoreError, match="no such table: nowhere"):
            await opened("serve")
    with pytest.raises(StoreError, match="an empty database"):
        await opened("read")
    await opened("serve")
