"""Looking after a store, in a folder that is served and in a database of its own."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebrank.addons.postgresql.database import Address
from ebrank.addons.postgresql.schema import POSTGRESQL
from ebrank.service.api import RankRequest
from ebrank.service.engine import Engine
from ebrank.service.settings import Settings
from ebrank.service.store import open
from ebrank.service.store.records import Minute, ModelRecord
from ebrank.service.store.schema import SQLITE
from ebrank.service.store.sqlite import SqliteStore
from ebrank.service.store.sqlite.database import about
from tests.cli.commands import answered, ebrank, good, refused
from tests.postgres import Postgres
from tests.service.histories import contents, fill
from tests.service.scenes import START, Clock, items
from tests.service.store import blocking
from tests.service.store.blocking import Blocking

# --- backup, export, replay ----------------------------------------------------------------------


@pytest.fixture
def store() -> Iterator[Blocking]:
    """A store that is open, as if it was served."""
    opened = Blocking(SqliteStore("store"))
    blocking.run(fill(opened.wrapped))
    yield opened
    opened.close()


def test_a_replay_finds_a_counter_that_was_touched(store: Blocking) -> None:
    line = "equal: 5 items of 2 queries, 5 events and 3 rankings replayed\n"
    assert good("replay", "store").stdout == line
    counts = {"queries": 2, "items": 5, "rankings": 3, "events": 5}
    same = {"path": "store", "equal": True, **counts, "different": 0, "differences": []}
    assert answered("replay", "store") == same
    store.close()
    with sqlite3.connect("store/log.db") as database:
        database.execute(
            "UPDATE evidence SET count = count + 1 WHERE outcome = 0 AND slot = 2 "
            "AND (query, place) = (SELECT query, place FROM items WHERE id = 'c')"
        )
    database.close()
    done = ebrank("replay", "store")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "not equal: 1 wrong counter; 5 items of 2 queries, 5 events and 3 rankings replayed",
        "  query 'q', item 'c': count of outcome 0 in slot 2 is 2, the log gives 1",
    ]
    document = json.loads(ebrank("replay", "store", "--json").stdout)
    assert (document["equal"], document["different"]) == (False, 1)
    assert document["differences"][0]["counter"] == "count of outcome 0 in slot 2"


@pytest.mark.usefixtures("store")
def test_an_export_says_what_it_holds() -> None:
    counts = (
        "5 items, 2 catalog, 11 evidence, 0 snapshot, 3 rankings, 5 events, 0 minutes, 0 models, "
        "0 arm_sums, 0 deletions"
    )
    assert good("export", "store", "out").stdout == f"out: {counts}\n"
    assert answered("export", "store", "out2")["rows"]["events"] == 5


def test_a_backup_to_a_file_and_to_a_folder(store: Blocking) -> None:
    for path in ("monday.db", "folders/that/are/new.db"):
        assert good("backup", "store", path).stdout.startswith(f"{path}: ")
        assert good("replay", path).stdout == good("replay", "store").stdout
    Path("spare").mkdir()
    size = answered("backup", "store", "spare")
    assert size == {"path": "spare/log.db", "bytes": Path("spare/log.db").stat().st_size}
    again = Blocking(SqliteStore("spare"))
    assert again.log.entries() == store.log.entries()
    again.close()


# --- ebrank store --------------------------------------------------------------------------------


async def filled(url: str) -> None:
    async with open(url) as store:
        await fill(store)


async def aged(url: str, version: int) -> None:
    address = Address(url)
    connection = await address.connected()
    await connection.execute("UPDATE state SET schema_version = $1", version)
    await connection.close()


def test_a_store_is_made_once_and_migrated(database: Postgres) -> None:
    url = database.url("cli")
    name = "postgresql://postgres@/postgres?schema=cli"
    missing = f"error: {name}: there is no store. Run `ebrank store init`.\n"
    assert refused("store", "migrate", url) == missing
    assert good("store", "init", url).stdout.endswith("the store exists and is empty\n")
    asyncio.run(filled(url))
    assert good("store", "init", url).stdout.endswith("the store exists and holds 2 queries\n")
    done = good("store", "migrate", url).stdout
    assert done == f"{name}: already at version {POSTGRESQL.version}\n"
    asyncio.run(aged(url, 0))
    said = refused("store", "init", url)
    reads = f"this ebrank reads version {POSTGRESQL.version}"
    assert f"a store of version 0; {reads}. Run `ebrank store migrate`" in said
    for version, problem in ((0, "too old to migrate"), (POSTGRESQL.version + 1, "Upgrade")):
        asyncio.run(aged(url, version))
        assert problem in refused("store", "migrate", url)
    asyncio.run(aged(url, POSTGRESQL.version))
    line = "equal: 5 items of 2 queries, 5 events and 3 rankings replayed\n"
    assert good("replay", url).stdout == line


def test_a_folder_is_migrated(tmp_path: Path) -> None:
    folder = str(tmp_path / "store")
    asyncio.run(filled(folder))
    done = good("store", "migrate", folder).stdout
    assert done == f"{folder}: already at version {SQLITE.version}\n"


def test_servers_whose_clocks_differ_a_little_leave_nothing_to_repair(database: Postgres) -> None:
    url = database.url("clocks")

    async def lived() -> None:
        async with open(url) as one, open(url) as two:
            clocks = Clock(), Clock(START - 50.0)
            servers = [
                await Engine.open(store, Settings(), clock=clock, timer=clock)
                for store, clock in zip((one, two), clocks, strict=True)
            ]
            for at in range(4):  # a query of both, and one of each
                for number, server in enumerate(servers):
                    for query in ("q", f"q{number}"):
                        await server.rank(RankRequest(query, items=[*items(2)]))
                clocks[at % 2].now += 10.0
            for server in servers:
                await server.close()

    async def spoiled() -> None:
        connection = await Address(url).connected()
        await connection.execute("UPDATE evidence SET count = count + 1")
        await connection.close()

    asyncio.run(lived())
    good("store", "copy", url, "copy")
    for path, about_it in ((url, "PostgreSQL"), ("copy", about())):
        assert good("check", path).stdout == f"nothing is wrong\n{about_it}\n"
    asyncio.run(spoiled())
    done = ebrank("check", url)
    assert (done.exit_code, "Restore a backup" in done.stdout) == (1, True)
    assert "Restore a backup of the database" in refused("store", "copy", url, "other")


async def held(url: str) -> dict[str, Any]:
    async with open(url, "read") as store:
        return await contents(store)


async def some_rolled_up(url: str) -> None:
    async with open(url) as store:
        await store.log.roll_up(30.5)
        await store.models.add(ModelRecord(1, 5.0, 10, None, None, True), b"one")
        await store.meta.set({"salt": "x"}, [Minute(60.0, {"clicks": 1.0})])


def test_a_copy_there_and_back_is_equal_to_the_bit(database: Postgres, tmp_path: Path) -> None:
    here, there, back = str(tmp_path / "store"), database.url("copied"), str(tmp_path / "back")
    asyncio.run(filled(here))
    asyncio.run(some_rolled_up(here))
    line = "equal: 5 items of 2 queries and 5 entries of the log\n"
    assert good("store", "copy", here, there).stdout == line
    counts = {"queries": 2, "items": 5, "entries": 5, "left_out": []}
    assert answered("store", "copy", there, back) == counts
    before = asyncio.run(held(here))
    assert asyncio.run(held(there)) == before
    assert asyncio.run(held(back)) == before
    assert before["settings"]["salt"] == "x"
    assert good("replay", there).stdout.startswith("equal: 5 items")
    assert "there is a store already" in refused("store", "copy", here, there)
