"""One database in the place of another, in one step, and the old one kept beside it."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from ebrank.service.store.base import StoreError
from ebrank.service.store.sqlite.database import connect, explained
from ebrank.service.store.sqlite.folder import NAME, flush_folder


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
