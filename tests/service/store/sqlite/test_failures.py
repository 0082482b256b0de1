"""Disks and files that fail: a clear message that names the file, and nothing half done."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebrank.service.ops.replay import replay
from ebrank.service.store.base import Damaged, Mode, StoreError
from ebrank.service.store.records import Minute
from ebrank.service.store.sqlite import SqliteStore
from tests.service.histories import contents, event, fill, new_items, ranking
from tests.service.store.blocking import Blocking, run
from tests.service.store.killing import kill_again_and_again

NOBODY = 65534
MODES: tuple[Mode, ...] = ("serve", "read")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Blocking]:
    opened = Blocking(SqliteStore(tmp_path / "store"))
    run(fill(opened.wrapped))
    yield opened
    opened.close()


def refused(work: Callable[[], object], *words: str) -> None:
    """Check that work is refused with these words, and without leaving anything."""
    with pytest.raises(StoreError) as told:
        work()
    for word in words:
        assert word in str(told.value)


# --- full and read-only disks --------------------------------------------------------------------


def test_a_full_disk_stops_a_write_and_nothing_else(store: Blocking) -> None:
    before, writer = run(contents(store.wrapped)), store.database._writer
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages}")
    many = [ranking(f"more-{number}", "abc", time=80.0) for number in range(1000)]
    place = str(store.database.path)
    refused(lambda: store.log.write(many), place, "the disk is full", "nothing of this")
    refused(lambda: store.items.put("new", new_items(*"abcdefgh", width=4000), 80.0), "full")
    assert run(contents(store.wrapped)) == before
    writer.execute("PRAGMA max_page_count = 1000000")
    assert {one.status for one in store.log.write(many).written} == {"accepted"}
    assert run(replay(store.wrapped)).equal


CHILD_ON_A_SMALL_DISK = """
import resource, signal, sys
from ebrank.service.store.base import Mode, StoreError
from ebrank.service.store.sqlite import SqliteStore
from tests.service.histories import fill, ranking
from tests.service.store.blocking import Blocking, run
store = Blocking(SqliteStore(sys.argv[1]))
run(fill(store.wrapped))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
written = 0
try:
    while True:
        store.log.write([ranking(f"more-{written}", "abc", time=80.0)])
        written += 1
except StoreError as problem:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(problem)
store.log.write([ranking("last", "abc", time=90.0)])
print(written)
"""


def test_a_write_that_the_system_refuses_is_told_and_the_store_goes_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD_ON_A_SMALL_DISK, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parents[4],
    )
    message, written = done.stdout.splitlines()
    assert message.startswith(f"{tmp_path / 'store/log.db'}: the disk failed")
    view = Blocking(SqliteStore(tmp_path / "store", "read"))
    names = [getattr(one, "id", "") for one in view.log.entries()]
    assert sum(name.startswith(("more", "last")) for name in names) == int(written) + 1
    assert run(replay(view.wrapped)).equal
    view.close()


def test_a_flush_that_fails_ends_all_writing(
    store: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", broken)
        refused(store.flush, str(store.database.path), "failed to flush (Input/output error)")
    refused(store.flush, "failed to flush")  # the disk may claim to be well again: too late
    refused(lambda: store.log.write([ranking("r9", "abc", time=80.0)]), "failed to flush")
    assert store.log.ranking("r9") is None
    refused(store.close, "failed to flush")


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder whose owner is not root, who may write anywhere; and this process is that owner."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.geteuid() == 0
        if root:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        yield Path(folder)
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("file", ["log.db", "lock", "."])
def test_read_only_files_are_reported(nobody: Path, file: str) -> None:
    run(SqliteStore(nobody / "store").close())
    (nobody / "store" / file).chmod(0o500 if file == "." else 0o400)
    if file == ".":
        (nobody / "store/lock").chmod(0o600)
    try:
        with pytest.raises(
            StoreError, match=r"store/(log\.db|lock): .*(Make it writable|Check the path)"
        ):
            write_something(nobody / "store")
    finally:
        (nobody / "store").chmod(0o700)


def write_something(folder: Path) -> None:
    store = Blocking(SqliteStore(folder))
    try:
        store.items.put("q", new_items("a"), 1.0)
    finally:
        store.close()


def test_a_copy_that_cannot_be_written_can_be_read(store: Blocking, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    store.backup(tmp_path / "copy")
    view = Blocking(SqliteStore(tmp_path / "copy", "read"))
    assert view.items.queries() == store.items.queries()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        view.database._connection.execute("DELETE FROM items")
    for work in (
        lambda: view.items.put("q", new_items("a"), 1.0),
        lambda: view.log.write([]),
        lambda: view.log.roll_up(1.0),
        lambda: view.models.activate(0),
        lambda: view.meta.set({}),
    ):
        refused(work, "opened to be read, not to be written")
    view.close()


# --- damaged and foreign files -------------------------------------------------------------------


def damage(path: Path, page: int, length: int = 4096) -> None:
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(b"\xa5" * length)


def root_of(store: Blocking, table: str) -> int:
    """Return the number of a table's first page, from 0."""
    sql = "SELECT rootpage - 1 FROM sqlite_schema WHERE name = ?"
    return int(store.database._connection.execute(sql, (table,)).fetchone()[0])


def test_a_damaged_page_is_told_by_whoever_meets_it(store: Blocking, tmp_path: Path) -> None:
    page = root_of(store, "evidence")
    store.close()
    damage(tmp_path / "store/log.db", page)
    store = Blocking(SqliteStore(tmp_path / "store"))
    words = (str(store.database.path), "the database is damaged", "restore the latest backup")
    refused(lambda: store.items.load("q"), *words)
    refused(lambda: store.log.write([ranking("r9", "abc", time=90.0)]), *words)
    refused(lambda: store.backup(tmp_path / "copy.db"), "damaged", "not kept")
    assert not list(tmp_path.glob("*copy.db*"))
    assert len(store.log.entries()) == 8, "what is not damaged can be read; nothing was added"
    store.close()


def test_events_that_the_file_cannot_hold_are_damage(store: Blocking) -> None:
    """Not a ranking id that is taken: what is a duplicate was found before."""
    click = event("e", ranking("r", "ab"), "a")
    store.log.write([ranking("r", "ab"), click])
    store.items.put("other", new_items("a"), 1.0)
    with pytest.raises(Damaged, match=r"log\.db: .*events\.ranking_id"):
        store.log.write([replace(click, event_id="another", query="other")])
    refused(lambda: store.log.write([ranking("r", "ab")]), "a ranking id already exists")


@pytest.mark.parametrize("table", ["rankings", None])
def test_a_damaged_log_or_header_is_told_at_once(
    store: Blocking, tmp_path: Path, table: str | None
) -> None:
    page = 0 if table is None else root_of(store, table)
    store.close()
    damage(tmp_path / "store/log.db", page, length=50 if table is None else 4096)
    told = "log.db: not a database" if table is None else "the database is damaged"
    for mode in MODES:
        refused(lambda mode=mode: SqliteStore(tmp_path / "store", mode), told)  # type: ignore[misc]


def test_a_damaged_tail_of_the_wal_loses_only_what_was_not_flushed(tmp_path: Path) -> None:
    store = Blocking(SqliteStore(tmp_path / "store"))
    run(fill(store.wrapped))
    store.flush()
    kept = store.log.entries()
    length = store.database.path.with_name("log.db-wal").stat().st_size
    store.log.write([ranking("r9", "abc", time=80.0)])
    (tmp_path / "after").mkdir()
    for name in ("log.db", "log.db-wal"):  # as after a power cut, with the tail never written
        shutil.copy(tmp_path / "store" / name, tmp_path / "after" / name)
    store.close()
    with (tmp_path / "after/log.db-wal").open("r+b") as file:
        file.truncate(length + 1000)
    again = Blocking(SqliteStore(tmp_path / "after"))
    assert again.log.entries() == kept
    assert run(replay(again.wrapped)).equal
    again.close()


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    database = sqlite3.connect(tmp_path / "store/log.db")
    database.execute("CREATE TABLE accounts (money)")
    database.close()
    before = (tmp_path / "store/log.db").read_bytes()
    for mode in MODES:
        refused(lambda mode=mode: SqliteStore(tmp_path / "store", mode), "of another program")  # type: ignore[misc]
    assert (tmp_path / "store/log.db").read_bytes() == before


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("…")
    refused(lambda: SqliteStore(tmp_path), "no store, and not empty (it holds thesis.tex)")
    refused(lambda: SqliteStore(tmp_path / "thesis.tex"), "a file, not a folder")
    refused(lambda: SqliteStore(tmp_path, "read"), "no store, for there is no log.db")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_ids_that_are_no_text_are_told(store: Blocking) -> None:
    refused(lambda: store.items.put("\ud800", new_items("a"), 1.0), "not valid Unicode")
    refused(lambda: store.items.load("\ud800"), "not valid Unicode")
    bad = {"totals": "\ud800"}
    refused(lambda: store.meta.set(bad, [Minute(60.0, {"clicks": 1.0})]), "not valid Unicode")
    assert (store.meta.minutes(0.0), store.meta.all()) == ([], {})


def test_a_closed_store_says_so(store: Blocking) -> None:
    served = store.log.ranking("r1")
    assert served is not None
    store.close()
    store.close()
    for work in (
        store.items.queries,
        store.flush,
        lambda: store.items.load("q"),
        lambda: store.log.roll_up(1.0),
        lambda: store.log.write([event("e9", served, "c")]),
    ):
        refused(work, "the store is closed")


# --- two servers ---------------------------------------------------------------------------------


def test_a_second_server_is_told_who_has_the_store(tmp_path: Path) -> None:
    owner = SqliteStore(tmp_path / "store")
    refused(lambda: SqliteStore(tmp_path / "store"), "another server", f"process {os.getpid()})")
    run(SqliteStore(tmp_path / "store", "read").close())
    run(owner.close())
    run(SqliteStore(tmp_path / "store").close())


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_and_nothing_counts_twice(tmp_path: Path) -> None:
    """`kill -9` at random moments: what was acknowledged is there, once. A benchmark kills more."""
    outcome = kill_again_and_again(tmp_path / "store", rounds=4)
    assert outcome.acknowledged >= 4 * 3
