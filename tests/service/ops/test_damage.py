"""Files damaged at random places: whatever is asked, the answer is clear, and `check` finds it."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ebrank import EBRanker
from ebrank.errors import EBRankError
from ebrank.model.policy import model_file
from ebrank.service.core.catalog import SCHEMA
from ebrank.service.core.feature_schema import FeatureSchema
from ebrank.service.learning.fitting import gather
from ebrank.service.learning.training import job
from ebrank.service.ops.check import check
from ebrank.service.ops.repair import repair, survey
from ebrank.service.ops.replay import replay
from ebrank.service.ops.transfer.exporting import export
from ebrank.service.settings import Settings
from ebrank.service.store import Store, StoreView, open
from ebrank.service.store.records import Minute, ModelRecord, Operation
from ebrank.service.store.sqlite import SqliteStore
from ebrank.testing.histories import contents, event, new_items, ranking
from tests.in_process import in_process
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


async def each_query(store: StoreView) -> None:
    for query in await store.items.queries():
        await store.items.load(query)


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
        before = (folder / "log.db").read_bytes()
        await outcome(survey(str(folder)))
        assert (folder / "log.db").read_bytes() == before
        if not await outcome(repair(str(folder))):
            again = await opened(folder, look_again)
            assert again == "", again

    async def look_again(store: Store) -> None:
        assert (await replay(store)).equal
        faults = [fault for fault in await check(store, NOW) if fault.kind != "model"]
        assert faults == []

    asyncio.run(scene())


async def test_a_sound_store_has_no_faults_and_needs_no_repair(sound: Path, tmp_path: Path) -> None:
    async with open(str(sound), "read") as store:
        assert await check(store, NOW) == []
        before = await contents(store)
    assert not (await survey(str(sound))).needed
    assert (await repair(str(sound))).kept is None
    async with open(str(sound), "read") as store:
        assert await contents(store) == before


def test_a_damaged_query_fails_alone_and_is_not_named_in_the_log(
    sound: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its requests fail with 503 and the remedy; those of other queries are served."""
    folder = tmp_path / "store"
    shutil.copytree(sound, folder)
    with sqlite3.connect(folder / "log.db") as database:
        database.execute("UPDATE features SET numbers = x'00' WHERE query = 7 AND place = 3")
        database.execute("UPDATE evidence SET slot = 99999999 WHERE query = 9 AND place = 0")
        database.execute("UPDATE items SET id = x'00' WHERE query = 11 AND place = 0")
        database.execute("DELETE FROM features WHERE query = 13 AND place = 2")
        database.execute("DELETE FROM items WHERE query = 15 AND place = 7")
        broken = "CAST(CAST('private' AS BLOB) || x'ff' AS TEXT)"
        database.execute(f"UPDATE items SET id = {broken} WHERE query = 17 AND place = 0")
    database.close()
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
