"""Flushes and checkpoints of SQLite's write-ahead log, neither of which stops a writer.

A commit appends pages to `log.db-wal`; a checkpoint copies them into `log.db`. SQLite would do the
flush inside a commit, and the checkpoint after one, and both would make whoever writes next wait.
Here commits are NORMAL (no flush), and

- `flush` calls fdatasync on the WAL from any thread. Pages are either in it, and on disk then, or
  were moved by a checkpoint, which flushes both files before the WAL is used from its start again.
- a thread checkpoints every second. A WAL that is written to all the time would never be used from
  its start again, so beyond a limit the thread holds writers off until the last pages are copied.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

from ebrank.service.store.base import StoreError
from ebrank.service.store.sqlite.connection import connect

INTERVAL_SECONDS = 1.0
LIMIT_PAGES = 16_384
"""64 MB: what is copied at the end of a long rush, and read again after a crash."""


class Wal:
    """Flushes and checkpoints a database until closed.

    Args:
        path: the database.
        writing: held by whoever writes.
    """

    def __init__(self, path: Path, writing: threading.RLock) -> None:
        self._path = path
        self._writing = writing
        self._file = os.open(path.with_name(path.name + "-wal"), os.O_RDONLY | os.O_CLOEXEC)
        self._failed = ""
        self._connection = connect(path)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def flush(self) -> None:
        """Return when every commit so far is on disk."""
        self.check()
        try:
            os.fdatasync(self._file)
        except OSError as problem:
            # The kernel may have dropped the pages, and would report success the next time.
            self._failed = f"{self._path}: the disk failed to flush ({problem.strerror})"
            self.check()

    def check(self) -> None:
        """Raise if a flush has failed."""
        if self._failed:
            raise StoreError(f"{self._failed}. Mend the disk, then start again: replay tells all.")

    def checkpoint(self) -> None:
        """Copy what is in the WAL; hold writers off for the rest if it is long."""
        if self._passive() > LIMIT_PAGES:
            with self._writing:
                self._passive()

    def _passive(self) -> int:
        """Copy what can be copied while others read and write; return the WAL's length in pages."""
        _, pages, _ = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return int(pages)

    def _run(self) -> None:
        while not self._closing.wait(INTERVAL_SECONDS):
            try:
                self.checkpoint()
            except sqlite3.Error:
                continue  # a full disk, say: writers will be told; here the next second may do

    def close(self) -> None:
        """Stop."""
        self._closing.set()
        self._thread.join()
        self._connection.close()
        os.close(self._file)
