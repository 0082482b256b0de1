"""A store whose clock was years ahead once, or whose counters are wrong, is set right."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from ebrank.service.api import RankRequest
from ebrank.service.engine import Engine
from ebrank.service.ops.check import DAY
from ebrank.service.ops.repair import repair, survey
from ebrank.service.ops.replay import replay
from ebrank.service.settings import Settings
from ebrank.service.store import StoreError, open
from ebrank.service.store.records import Minute
from ebrank.testing.histories import contents, fill
from tests.cli.commands import answered, ebrank, good, refused
from tests.service.scenes import Clock, click, items

YEARS = 4 * 365 * DAY


async def used(folder: Path, clock: Clock, name: str) -> None:
    """Serve a list and a click by a clock."""
    async with open(str(folder)) as store:
        engine = await Engine.open(store, Settings(), clock=clock, timer=clock)
        await engine.put_items("q", items(3))
        await engine.put_items(name, items(2))
        answer = await engine.rank(RankRequest("q", user="ada"))
        await engine.feedback([click(name, answer.ranking_id, answer.items[0].id)])
        await engine.close()


async def poisoned(folder: Path) -> None:
    """Make a store, and start it once with a clock that is years ahead."""
    now = time.time()
    await used(folder, Clock(now - 60.0), "before")
    await used(folder, Clock(now + YEARS), "ahead")
    async with open(str(folder)) as store:
        await store.meta.set({}, [Minute(now + YEARS, {"clicks": 1.0})])


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores to copy: a sound one, and a poisoned one."""
    stores = {name: tmp_path_factory.mktemp("begun") / name for name in ("sound", "poisoned")}

    async def made() -> None:
        await poisoned(stores["poisoned"])
        async with open(str(stores["sound"])) as store:
            await fill(store)

    asyncio.run(made())
    return stores


@pytest.fixture
def folder(begun: dict[str, Path], tmp_path: Path) -> Path:
    """A poisoned store."""
    return Path(shutil.copytree(begun["poisoned"], tmp_path / "store"))


@pytest.fixture
def sound(begun: dict[str, Path], tmp_path: Path) -> Path:
    """A store without faults."""
    return Path(shutil.copytree(begun["sound"], tmp_path / "store"))


async def test_a_poisoned_store_rolls_up_again_after_its_repair(folder: Path) -> None:
    now = time.time()
    async with open(str(folder), "read") as store:
        assert await store.log.last_time() > now + YEARS - DAY
        before = await contents(store)
    report = await survey(str(folder))
    assert (report.late_entries, report.entries, report.kept) == (2, 4, None)
    async with open(str(folder), "read") as store:
        assert await contents(store) == before
    report = await repair(str(folder))
    assert report.kept is not None
    async with open(str(folder)) as store:
        assert abs(await store.log.last_time() - now) < 300.0
        assert (await replay(store)).equal
        times = [state["query"] for state in (await contents(store))["current"]]
        assert times == ["q", "before", "ahead"]
        assert await store.meta.minutes(now + DAY) == []
        assert await store.meta.get("salt") == before["settings"]["salt"]
        later = time.time() + 1.0
        assert (await store.log.roll_up(later)).events == 2, "retention runs again"
    async with open(report.kept, "read") as kept:
        assert await contents(kept) == before
    assert not (await survey(str(folder))).needed
    await used(folder, Clock(time.time()), "after")


def names(folder: Path) -> set[str]:
    """Return the files of a store, but for those that SQLite adds while it is read."""
    return {one.name for one in folder.iterdir()} - {"log.db-wal", "log.db-shm"}


def test_a_repair_that_failed_can_be_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(folder)
    with monkeypatch.context() as patch:

        def refuse(database: Path, rebuilt: Path) -> Path:
            assert (rebuilt / "log.db").exists()
            raise StoreError(f"{database}: still in use")

        patch.setattr("ebrank.service.store.sqlite.store.swapped", refuse)
        assert "still in use" in refused("repair", folder, "--apply")
    assert names(folder) == before
    assert good("repair", folder, "--apply").stderr == ""


def test_what_a_killed_repair_left_is_removed(folder: Path) -> None:
    before = names(folder)
    for left in ("log.db.rebuilt", ".log.db.rebuilt.0a1b2c3d"):
        (folder / left).mkdir()
        (folder / left / "log.db").write_text("personal data")
    done = answered("repair", folder, "--apply")
    assert names(folder) == before | {Path(done["kept"]).name}


def test_the_command_line_says_first_what_it_would_change(folder: Path) -> None:
    looked = ebrank("repair", folder)
    assert looked.exit_code == 1
    assert looked.stdout.startswith("2 of 4 entries of the log are dated after ")
    assert "Nothing was changed" in looked.stdout
    checked = ebrank("check", folder, "--json")
    assert checked.exit_code == 1
    [fault] = json.loads(checked.stdout)["faults"]
    assert fault["kind"] == "time"
    done = answered("repair", folder, "--apply")
    assert (done["needed"], done["late_entries"]) == (True, 2)
    assert Path(done["kept"]).is_file()
    assert Path(done["kept"]).stat().st_mode & 0o077 == 0
    assert ebrank("repair", folder).stdout == "nothing to repair\n"
    assert ebrank("check", folder).stdout.startswith("nothing is wrong\n")


@pytest.mark.parametrize(
    ("statement", "kind", "words"),
    [
        ("UPDATE evidence SET count = count + 1", "counter", "the log gives"),
        ("UPDATE evidence SET slot = 99 WHERE slot = 0", "row", "in slot 99"),
        ("UPDATE evidence SET count = 99 WHERE outcome > 0", "row", "more clicks than impressions"),
        ("DELETE FROM queries WHERE number = 2", "orphan", "rows of query 2, which is not there"),
        ("UPDATE queries SET size = 9 WHERE number = 1", "row", "9 are expected"),
        ("UPDATE features SET numbers = x'000000' WHERE place = 1", "row", "wrong size"),
        ("UPDATE rankings SET items = '[1, 77]'", "orphan", "place 77"),
        ("UPDATE rankings SET items = 'no list'", "row", "holds no list"),
        ("UPDATE rankings SET relevance = x'00'", "row", "parts of other lengths"),
        ("UPDATE events SET time = 'noon'", "row", "values of time are not of the type REAL"),
        ("UPDATE events SET received = received - 500 WHERE seq = 8", "time", "goes back"),
        ("UPDATE state SET active_model = 7", "model", "model 7 is not there"),
        (
            "INSERT INTO meta VALUES ('features', '{')",
            "setting",
            "its list of features cannot be read",
        ),
        (
            "INSERT INTO models (version, created, rows, activated, reason, features, document) "
            "VALUES (1, 2.0, 3, 0, '', '[]', x'7b')",
            "model",
            "model 1: not an ebrank model, or a damaged one",
        ),
        (
            "INSERT INTO models (version, created, rows, activated, reason, features, document) "
            "VALUES (1, 2.0, 3, 0, '', '', x'7b')",
            "model",
            "the database is damaged (JSONDecodeError",
        ),
        ("DROP TABLE minutes", "setting", "no such table: minutes"),
    ],
)
def test_check_finds_damage_of_every_kind(
    sound: Path, statement: str, kind: str, words: str
) -> None:
    with sqlite3.connect(sound / "log.db") as database:
        assert database.execute(statement).rowcount != 0
    database.close()
    done = ebrank("check", sound)
    assert done.exit_code == 1
    found = [line for line in done.stdout.splitlines() if line.startswith(f"{kind}: ")]
    assert any(words in line for line in found), done.stdout
    ebrank("repair", sound)


async def test_wrong_counters_are_counted_again(sound: Path) -> None:
    async with open(str(sound), "read") as store:
        right = await contents(store)
    with sqlite3.connect(sound / "log.db") as database:
        database.execute("UPDATE evidence SET count = count + 1 WHERE slot = 1")
    database.close()
    report = await repair(str(sound))
    assert report.wrong_counters > 0
    async with open(str(sound), "read") as store:
        assert await contents(store) == right


async def test_a_store_in_use_and_a_backup_are_not_repaired(sound: Path, tmp_path: Path) -> None:
    async with open(str(sound)) as store:
        await store.backup(tmp_path / "copy.db")
        with pytest.raises(StoreError, match="another server is using this store"):
            await repair(str(sound))
    with pytest.raises(StoreError, match="a backup"):
        await repair(str(tmp_path / "copy.db"))


def test_a_folder_without_a_store_is_rejected(tmp_path: Path) -> None:
    for verb in ("check", "repair"):
        assert "no store" in refused(verb, tmp_path / "absent")
    (tmp_path / "log.db").write_bytes(b"\xa5" * 9000)
    done = ebrank("check", tmp_path)
    assert done.exit_code == 1
    assert "not a database, or damaged" in done.stdout
