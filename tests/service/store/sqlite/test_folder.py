"""What was made or renamed is on disk under its name, and private to whoever made it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebrank.addons.exporting import export
from ebrank.service.ops.copying import copy_store
from ebrank.service.store import open
from ebrank.service.store.sqlite.store import private_copy
from tests.service.histories import fill
from tests.service.store.blocking import run


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> dict[Path, set[str]]:
    """Return the names that each folder held when it was last flushed."""
    names: dict[Path, set[str]] = {}
    flush = os.fsync

    def noted(descriptor: int) -> None:
        flush(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            names[path] = {one.name for one in path.iterdir()}

    monkeypatch.setattr(os, "fsync", noted)
    return names


async def test_a_store_a_backup_and_a_copy_have_their_names_on_disk(
    tmp_path: Path, flushed: dict[Path, set[str]]
) -> None:
    async with open(str(tmp_path / "new" / "deep" / "store")) as store:
        await fill(store)
        assert "new" in flushed[tmp_path]
        assert "deep" in flushed[tmp_path / "new"]
        assert "store" in flushed[tmp_path / "new" / "deep"]
        assert {"log.db", "lock"} <= flushed[tmp_path / "new" / "deep" / "store"]
        await store.backup(tmp_path / "copy.db")
        assert "copy.db" in flushed[tmp_path]
    await copy_store(str(tmp_path / "copy.db"), str(tmp_path / "copied"))
    assert "copied" in flushed[tmp_path]


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Return the permissions of a folder, as `.`, and of what is in it."""
    found = {one.name: one.stat().st_mode & 0o777 for one in folder.iterdir()}
    return {".": folder.stat().st_mode & 0o777, **found}


async def test_store_backup_export_and_copy_are_private_whatever_the_umask(
    tmp_path: Path, umask: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with open(str(tmp_path / "store")) as store:
        await fill(store)
        await store.backup(tmp_path / "copies" / "copy.db")
        await export(store, tmp_path / "exported")
        found = modes(tmp_path / "store")
        assert found.keys() == {".", "lock", "log.db", "log.db-wal", "log.db-shm"}
        assert found == {name: 0o700 if name == "." else 0o600 for name in found}
    await copy_store(str(tmp_path / "store"), str(tmp_path / "copied"))
    assert modes(tmp_path / "copies") == {".": 0o700, "copy.db": 0o600}
    for folder in ("exported", "copied"):
        found = modes(tmp_path / folder)
        assert found == {name: 0o700 if name == "." else 0o600 for name in found}
    assert "access" not in caplog.text


def test_a_store_that_others_may_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(closed(tmp_path / "store"))
    (tmp_path / "store").chmod(0o755)
    (tmp_path / "store" / "log.db").chmod(0o640)
    with caplog.at_level(logging.WARNING):
        run(closed(tmp_path / "store"))
    [record] = caplog.records
    assert "store has mode 755, log.db has mode 640" in record.getMessage()
    assert f"chmod -R go= {tmp_path / 'store'}" in record.getMessage()


def test_a_copy_that_a_killed_reader_left_is_removed_and_one_in_use_stays(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    run(closed(folder))
    for name in (".log.db.0a1b2c3d", ".log.db.0a1b2c3d-journal", ".log.db.notes"):
        (folder / name).write_text("personal data")
    with private_copy(folder / "log.db") as copy:
        run(closed(folder))
        assert {one.name for one in folder.iterdir()} == {
            "log.db",
            "lock",
            ".log.db.notes",
            copy.name,
        }
    assert not copy.exists()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from ebrank.service.store import open

def die(done: int, total: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)

async def session() -> None:
    if sys.argv[1] == "backup":
        async with open(sys.argv[2]) as store:
            await store.backup(Path(sys.argv[3]), die)
    async with open(sys.argv[3], "new"):
        die(0, 0)

asyncio.run(session())
"""


@pytest.mark.parametrize("what", ["backup", "new"])
async def test_what_a_killed_backup_or_import_left_is_removed_by_the_next(
    tmp_path: Path, what: str
) -> None:
    await closed(tmp_path / "store")
    there = tmp_path / "there"
    there.mkdir()
    (there / ".mine.0a1b2c3d").write_text("not ours")
    for target in ("monday", "tuesday"):  # no other is called the same
        arguments = [what, str(tmp_path / "store"), str(there / target)]
        done = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
        assert done.returncode == -signal.SIGKILL
        names = {one.name for one in there.iterdir()} - {".mine.0a1b2c3d"}
        assert {name.split(".")[1] for name in names} == {target}
    async with open(str(there / "other"), "new"):  # which is being built all the while
        building = {one.name for one in there.iterdir()}
        assert len(building) == 2
        async with open(str(tmp_path / "store")) as store:
            await store.backup(there / "wednesday")
        assert {one.name for one in there.iterdir()} == building | {"wednesday"}
    assert {one.name for one in there.iterdir()} == {".mine.0a1b2c3d", "wednesday", "other"}


async def closed(folder: Path) -> None:
    """Open a store and close it."""
    async with open(str(folder)):
        pass
