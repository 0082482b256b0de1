"""A copy of a store at one moment, while it is served.

Its pages are read in one transaction, so it is the store at that moment; the server keeps writing
to its WAL meanwhile, which grows until all pages are copied. The copy appears under its name when
it is complete, checked, and on disk.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ebrank.environment.files import make_private_file, make_private_folder
from ebrank.service.store.driver import Progress, StoreError
from ebrank.service.store.sqlite.database import connect, explained
from ebrank.service.store.sqlite.folder import NAME, flush_folder, unfinished

PAGES_AT_ONCE = 2000


def backup(source: Path, target: Path, progress: Progress | None = None) -> Path:
    """Copy a database to a new file, or into a folder, and return the file.

    A folder with a backup is a store: serve it, replay it.
    """
    place = _place(target)
    with unfinished(place, make_private_file) as building:
        with explained(source):
            _copy(source, building, progress)
            _check(source, building)
        with building.open("rb") as file:
            os.fsync(file.fileno())
        building.replace(place)
        flush_folder(place.parent)
    return place


def _copy(source: Path, target: Path, progress: Progress | None) -> None:
    def report(status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    with closing(sqlite3.connect(target, isolation_level=None)) as writer:
        with closing(connect(source, read_only=True)) as reader:
            reader.execute("BEGIN")
            reader.backup(writer, pages=PAGES_AT_ONCE, progress=report)
        writer.execute("PRAGMA journal_mode = DELETE")  # one file, without a WAL beside it


def _check(source: Path, target: Path) -> None:
    """Check every page of a copy; the server can checkpoint again meanwhile."""
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreError(f"{source}: damaged ({found}). The backup was not kept.")


@contextmanager
def private_copy(source: Path) -> Iterator[Path]:
    """Yield a copy of a database, which is removed at the end; open connections can go on."""
    folder = source.parent if os.access(source.parent, os.W_OK) else Path(tempfile.gettempdir())
    with unfinished(folder / source.name, make_private_file) as place:
        with explained(source):
            _copy(source, place, None)
        yield place


def _place(target: Path) -> Path:
    """Return the file a backup goes to; it must be new."""
    place = target / NAME if target.is_dir() else target
    if place.exists():
        raise StoreError(f"{place}: exists already. Name a new file or folder.")
    try:
        make_private_folder(place.parent)
    except OSError as problem:
        raise StoreError(f"{place.parent}: cannot be made: {problem.strerror}.") from None
    return place


# --- one database in the place of another --------------------------------------------------------


def swapped(database: Path, rebuilt: Path) -> Path:
    """Put the database of the folder `rebuilt` in the place of another; return the old one.

    Nobody may use either. A process that is killed on the way leaves the old one or the new one in
    place, never none.
    """
    _without_wal(database)
    kept = database.with_name(f"{NAME}.before-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
    try:
        os.link(database, kept)
    except OSError:  # some file systems have no links
        shutil.copy2(database, kept)
    flush_folder(database.parent)
    (rebuilt / NAME).replace(database)
    flush_folder(database.parent)
    return kept


def _without_wal(database: Path) -> None:
    """Bring what is in the write-ahead log into a database: it must not meet another one."""
    with explained(database):
        connection = connect(database)
        try:
            mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        finally:
            connection.close()
    if mode != "delete":
        raise StoreError(
            f"{database}: still in use. Stop the programs that read it, then try again."
        )
