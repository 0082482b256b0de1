"""Files damaged at random places: whatever is asked, the answer is clear, and `check` finds it."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from ebrank import EBRanker
from ebrank.addons.exporting import export
from ebrank.errors import EBRankError
from ebrank.model.policy import model_file
from ebrank.service.core.catalog import SCHEMA
from ebrank.service.core.feature_schema import FeatureSchema
from ebrank.service.learning.fitting import gather
from ebrank.service.learning.training import job
from ebrank.service.ops.check import check
from ebrank.service.ops.copying import copy_store
from ebrank.service.ops.replay import replay
from ebrank.service.settings import Settings
from ebrank.service.store import Store, open
from ebrank.service.store.records import Minute, ModelRecord, Operation
from ebrank.service.store.sqlite import SqliteStore
from tests.cli.commands import ebrank, refused
from tests.in_process import in_process
from tests.service.histories import event, new_items, ranking
from tests.service.scenes import linear_state

QUERIES = 20
SEEDS = range(12)
NOW = 10_000.0
BROKEN = {7, 9, 11, 13, 15, 17}


async def fill(store: Store) -> None:
    """Write a history on many pages, a part of it rolled up."""
    for number in range(QUERIES):
        await store.items.put(f"query {number}", new_items(*"abcdefgh", width=30), 1.0)
    for turn in range(200):
        served = ranking(
            f"r{turn}",
            "abcdefgh",
            query=f"query {turn % QUERIES}",
            time=10.0 + turn,
            relevance=(0.5,) * 8,
            explored=(False,) * 8,
            user=f"{turn:016x}",
        )
        clicks: list[Operation] = [
            event(f"event {turn} {item}", served, item, time=10.0 + turn) for item in "aceg"
        ]
        await store.log.write([served, *clicks])
    await store.log.roll_up(100.0)
    await store.catalog.put(new_items(*"abcdefghijklmnopqrstuvwxyz", width=30), 1.0)
    ranker = EBRanker("ebrank")
    ranker.state_ = linear_state(*[1.0] * 30)
    for version in (1, 2):
        record = ModelRecord(version, 50.0, 10, 0.1, 0.2, activated=True)
        await store.models.add(record, model_file.to_bytes(ranker))
    schema = {SCHEMA: FeatureSchema.positions(30).to_json()}
    await store.meta.set(schema, [Minute(60.0, {"clicks": 1.0})])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "store"

    async def session() -> None:
        async with open(str(folder)) as store:
            await fill(store)

    asyncio.run(session())
    return folder


def damaged(sound: Path, folder: Path, seed: int) -> Path:
    """Return a copy of a store with some bytes overwritten, anywhere but in the header."""
    shutil.copytree(sound, folder)
    chance = random.Random(seed)
    content = bytearray((folder / "log.db").read_bytes())
    for _ in range(chance.randint(1, 4)):
        begin = chance.randrange(100, len(content))
        length = chance.choice([1, 8, 100, 4096])
        content[begin : begin + length] = chance.randbytes(len(content[begin : begin + length]))
    (folder / "log.db").write_bytes(content)
    return folder


async def outcome(work: Awaitable[object]) -> str:
    """Return what a user would be told, empty if all is well; anything but that is a traceback."""
    try:
        await work
    except EBRankError as problem:
        return str(problem)
    return ""


async def opened(folder: Path, work: Callable[[Store], Awaitable[object]]) -> str:
    async def whole() -> None:
        async with open(str(folder), "read") as store:
            await work(store)

    return await outcome(whole())


async def each_query(store: Store) -> None:
    for query in await store.items.queries():
        await store.items.load(query)


async def saved(folder: Path, copy: Path) -> list[str]:
    """Copy what can be read of a store; return what was left out. The copy is sound."""
    before = (folder / "log.db").read_bytes()
    copied = await copy_store(str(folder), str(copy))
    assert (folder / "log.db").read_bytes() == before
    async with open(str(copy), "read") as store:
        assert (await replay(store)).equal
        assert [fault for fault in await check(store, NOW) if fault.kind != "model"] == []
    return [*copied.left_out]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_damage_anywhere_is_told_and_found(sound: Path, tmp_path: Path, seed: int) -> None:
    folder = damaged(sound, tmp_path / "store", seed)

    async def scene() -> None:
        told = {
            "replay": await opened(folder, replay),
            "load": await opened(folder, each_query),
            "export": await opened(folder, lambda store: export(store, tmp_path / "out")),
            "backup": await opened(folder, lambda store: store.backup(tmp_path / "copy.db")),
            "examine": await opened(folder, lambda store: gather(store, job(Settings(), 0))),
        }
        found: list[str] = []

        async def look(store: Store) -> None:
            found.extend(f"{one.kind}: {one.what}" for one in await check(store, NOW))

        refused = await opened(folder, look)
        if any(told.values()):
            assert refused or found, told
        if not await opened(folder, lambda store: asyncio.sleep(0)):
            await saved(folder, tmp_path / "new")

    asyncio.run(scene())


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy of a sound store."""
    return Path(shutil.copytree(sound, tmp_path / "store"))


def changed(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "log.db")) as database, database:
        for statement in statements:
            assert database.execute(statement).rowcount != 0


@pytest.mark.slow
@pytest.mark.parametrize("page", [b"", b"\x0a" + bytes(4) + b"\x10\0\0"])
def test_any_table_or_index_may_be_lost(folder: Path, tmp_path: Path, page: bytes) -> None:
    """Random bytes, or an empty page, which is what remains if a write was lost."""
    with closing(sqlite3.connect(folder / "log.db")) as database:
        roots = database.execute("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
        places = dict(roots.fetchall())
    whole, chance = (folder / "log.db").read_bytes(), random.Random(1)
    for name, number in places.items():
        begin, end = 4096 * (number - 1), 4096 * number
        content = page.ljust(4096, b"\0") if page else chance.randbytes(4096)
        (folder / "log.db").write_bytes(whole[:begin] + content + whole[end:])
        left_out = asyncio.run(saved(folder, tmp_path / name))
        if name.startswith(("sqlite", "catalog_")):
            assert len(left_out) <= 1, name  # an index is made again


@pytest.mark.parametrize(
    ("statement", "kind", "words"),
    [
        ("UPDATE evidence SET count = count + 1", "counter", "the log gives"),
        ("UPDATE evidence SET slot = 99 WHERE slot = 0 AND query = 3", "query", "'query 2': "),
        (
            "UPDATE evidence SET count = 99 WHERE outcome > 0",
            "query",
            "more clicks than impressions",
        ),
        ("DELETE FROM queries WHERE number = 2", "orphan", "items: 8 rows of queries that are not"),
        ("UPDATE queries SET size = 9 WHERE number = 1", "query", "'query 0': "),
        ("UPDATE features SET numbers = x'000000' WHERE place = 1", "query", "'query 5': "),
        ("UPDATE rankings SET items = '[1, 77]'", "log", "the database is damaged"),
        ("UPDATE rankings SET items = 'no list'", "log", "the database is damaged"),
        ("UPDATE rankings SET relevance = x'00'", "log", "the database is damaged"),
        ("UPDATE events SET time = 'noon'", "log", "the database is damaged"),
        ("UPDATE events SET received = received - 500 WHERE seq = 1000", "time", "goes back"),
        ("UPDATE state SET active_model = 7", "model", "model 7 is not there"),
        (
            "UPDATE meta SET value = '{' WHERE key = 'features'",
            "setting",
            "its list of features cannot be read",
        ),
        (
            "INSERT INTO models (version, created, rows, activated, reason, features, document) "
            "VALUES (3, 2.0, 3, 0, '', '[]', x'7b')",
            "model",
            "model 3: not an ebrank model, or a damaged one",
        ),
        (
            "INSERT INTO models (version, created, rows, activated, reason, features, document) "
            "VALUES (3, 2.0, 3, 0, '', '', x'7b')",
            "model",
            "the database is damaged (JSONDecodeError",
        ),
        ("DROP TABLE minutes", "setting", "no such table: minutes"),
    ],
)
def test_check_finds_damage_of_every_kind(
    folder: Path, statement: str, kind: str, words: str
) -> None:
    changed(folder, statement)
    done = ebrank("check", folder)
    assert done.exit_code == 1
    found = [line for line in done.stdout.splitlines() if line.startswith(f"{kind}: ")]
    assert any(words in line for line in found), done.stdout


def test_a_damaged_query_fails_alone_and_is_not_named_in_the_log(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its requests fail with 503 and the remedy; those of other queries are served."""
    changed(
        folder,
        "UPDATE features SET numbers = x'00' WHERE query = 7 AND place = 3",
        "UPDATE evidence SET slot = 99999999 WHERE query = 9 AND place = 0",
        "UPDATE items SET id = x'00' WHERE query = 11 AND place = 0",
        "DELETE FROM features WHERE query = 13 AND place = 2",
        "DELETE FROM items WHERE query = 15 AND place = 7",
        "UPDATE items SET id = CAST(CAST('private' AS BLOB) || x'ff' AS TEXT) "
        "WHERE query = 17 AND place = 0",
    )
    store = SqliteStore(folder)
    with in_process(store=store) as local:
        statuses = {}
        for number in range(QUERIES):
            response = local.request("POST", "/v1/rank", json={"query": f"query {number}"})
            statuses[number + 1] = response.status_code
            if response.status_code != 200:
                told = response.json()["error"]
                assert told["code"] == "unavailable"
                assert "the database is damaged" in told["message"]
                assert "`ebrank check STORE`" in told["message"]
        assert {number for number, status in statuses.items() if status == 503} == BROKEN
        assert sorted(set(statuses.values())) == [200, 503]
    lines = [one.getMessage() for one in caplog.records if "store failed" in one.getMessage()]
    assert len(lines) == len(BROKEN)
    assert not re.search(r"query \d|private", caplog.text)
    asyncio.run(store.close())


def test_a_folder_without_a_store_is_rejected(tmp_path: Path) -> None:
    assert "no store" in refused("check", tmp_path / "absent")
    (tmp_path / "log.db").write_bytes(b"\xa5" * 9000)
    done = ebrank("check", tmp_path)
    assert done.exit_code == 1
    assert "not a database, or damaged" in done.stdout
