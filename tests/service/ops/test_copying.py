"""Copies of stores: equal to the bit, or what can be read of a damaged one, said exactly."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ebrank.service.ops import copying
from ebrank.service.ops.check import check
from ebrank.service.ops.copying import copy_store
from ebrank.service.ops.replay import replay
from ebrank.service.store import Store, StoreError, open
from ebrank.service.store.records import ArmSums, Minute, ModelRecord
from tests.cli.commands import ebrank
from tests.service.histories import contents, fill
from tests.service.store.blocking import run

NOW = 1_000.0


async def fill_all(store: Store) -> None:
    """Write a history, half of it rolled up, with models, minutes and settings."""
    await fill(store)
    await store.log.roll_up(30.5)  # the ranking r2 is rolled up, its events are not
    minutes = [Minute(60.0, {"clicks": 1.0, "cost": 0.1}), Minute(120.0, {"clicks": 2.0})]
    arms = [ArmSums("t", 1, "a", 7, 3, 2, 0.5, 1), ArmSums("t", 2, "b", 9, 1, 0, 0.0, 0)]
    await store.meta.set({"key": '["☂"]'}, minutes, arms)
    await store.models.add(ModelRecord(1, 5.0, 10, None, 0.5, activated=True), b"one\0")
    second = ModelRecord(2, 6.0, 20, 0.4, 0.3, activated=True, reason="fine")
    await store.models.add(second, b"two", {"auto": "three"})
    await store.models.activate(1)
    await store.deletions.user("nobody", "digest", 70.0)


async def held(path: Path) -> dict[str, object]:
    async with open(str(path), "read") as store:
        assert (await replay(store)).equal
        faults = [fault for fault in await check(store, NOW) if fault.kind != "model"]
        assert faults == []
        return await contents(store)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("begun") / "store"

    async def filled() -> None:
        async with open(str(folder)) as store:
            await fill_all(store)

    run(filled())
    return folder


@pytest.fixture
def folder(begun: Path, tmp_path: Path) -> Path:
    """A store in a folder."""
    return Path(shutil.copytree(begun, tmp_path / "store"))


async def test_a_copy_is_equal_and_tells_its_progress(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "ENTRIES_AT_ONCE", 2)
    told = list[tuple[int, int]]()
    copied = await copy_store(str(folder), str(tmp_path / "copy"), lambda *now: told.append(now))
    assert copied == (2, 5, 5, ())
    assert told == [(0, 5)]
    assert await held(tmp_path / "copy") == await held(folder)
    with pytest.raises(StoreError, match="already exists"):
        await copy_store(str(folder), str(tmp_path / "copy"))


async def test_an_empty_store_has_a_copy(tmp_path: Path) -> None:
    async with open(str(tmp_path / "store")):
        pass
    copied = await copy_store(str(tmp_path / "store"), str(tmp_path / "copy"))
    assert copied == (0, 0, 0, ())


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "log.db")) as database, database:
        assert database.execute(statement).rowcount != 0


@pytest.mark.parametrize(
    ("statement", "left_out", "lost"),
    [
        ("UPDATE evidence SET count = count + 1", "is not the same in the copy", ""),
        ("UPDATE queries SET size = 9 WHERE number = 1", "'q': put its", "current snapshot log"),
        ("UPDATE features SET numbers = x'00' WHERE query = 1", "'q'", "current snapshot log"),
        ("UPDATE rankings SET items = '[77]'", "events on earlier lists", "snapshot log"),
        ("UPDATE rankings SET items = 'no list'", "events on earlier lists", "snapshot log"),
        ("UPDATE events SET time = 'noon' WHERE seq = 8", "events: 3 of 4 rows", "snapshot log"),
        ("UPDATE models SET features = '' WHERE version = 1", "JSONDecodeError", "models active"),
        ("DELETE FROM state", "damaged", "active last"),
        ("DROP TABLE minutes", "minutes: 0 of an unknown number of rows", "minutes"),
    ],
)
def test_damage_is_left_out_and_told(
    folder: Path, tmp_path: Path, statement: str, left_out: str, lost: str
) -> None:
    before = run(held(folder))
    with closing(sqlite3.connect(folder / "log.db")) as database, database:
        assert database.execute(statement).rowcount != 0
    done = ebrank("store", "copy", folder, tmp_path / "copy")
    assert done.exit_code == 1, done.output
    assert left_out in done.stdout
    assert done.stdout.splitlines()[-1].startswith("copied: ")
    after = run(held(tmp_path / "copy"))
    assert {part for part in before if after[part] != before[part]} == {*lost.split()}
