"""Checkpoints and writes lose nothing, though SQLite may have the WAL-reset bug.

The bug needs a checkpoint that stands still between two of its first instructions while another
connection starts the write-ahead log over (https://sqlite.org/wal.html#walresetbug). So a process
checkpoints all the time, as the thread of a server does, and is halted again and again while rows
are written. Without the reader that spans a checkpoint, rows are lost within seconds.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ebrank.service.store.sqlite.database import connect

SECONDS = float(os.environ.get("EBRANK_TEST_WAL_RESET_SECONDS", "8"))
ROWS, PAGE = 500, "x" * 3000
CHECKPOINTS = """
import os, sys, threading
from pathlib import Path
from ebrank.service.store.sqlite import database
database.INTERVAL_SECONDS = 0.0
path = Path(sys.argv[1])
database.Wal(path, os.open(path, os.O_RDONLY), threading.RLock())
print("running", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A database in memory if possible: on a disk, most of a checkpoint is a flush."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder) / "log.db"


@pytest.mark.slow
def test_a_halted_checkpoint_loses_no_rows(path: Path) -> None:
    chance, halts = random.Random(1), 0
    with closing(connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA busy_timeout = 0")
        writer.execute("CREATE TABLE probe (row INTEGER PRIMARY KEY, written INTEGER, room TEXT)")
        written = dict.fromkeys(range(ROWS), 0)
        writer.executemany("INSERT INTO probe VALUES (?, 0, ?)", [(row, PAGE) for row in written])
        command = [sys.executable, "-c", CHECKPOINTS, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                assert other.stdout.readline() == b"running\n"
                end = time.monotonic() + SECONDS
                while time.monotonic() < end:
                    halts += 1
                    os.kill(other.pid, signal.SIGSTOP)
                    for _ in range(chance.randint(1, 4)):
                        if not _wrote(writer, row := chance.randrange(ROWS)):
                            break
                        written[row] += 1
                    os.kill(other.pid, signal.SIGCONT)
                    time.sleep(chance.random() * 2e-4)
                    if not halts % 50:
                        assert _read(path) == written, f"lost after {halts} halts"
            finally:
                other.kill()
        assert _read(path) == written
        assert starts_over(path) > 10


def _wrote(writer: sqlite3.Connection, row: int) -> bool:
    """Write a row, on a page of its own; return whether the halted process let it."""
    try:
        writer.execute("UPDATE probe SET written = written + 1 WHERE row = ?", (row,))
    except sqlite3.OperationalError:
        return False
    return True


def _read(path: Path) -> dict[int, int]:
    with closing(connect(path, read_only=True)) as reader:
        return dict(reader.execute("SELECT row, written FROM probe"))


def starts_over(path: Path) -> int:
    """Return how often the write-ahead log began again."""
    header = path.with_name(f"{path.name}-wal").read_bytes()[:16]
    return int.from_bytes(header[12:])
