"""The embedded store: one folder with an SQLite database in WAL mode, and nothing to install.

`PATH/log.db` holds everything, `PATH/lock` says which server owns it. Items and their counters, the
log, and the index of duplicates change in one transaction. A transaction survives the process when
it is committed, and a power cut after the next flush (see `database`).
"""

from ebrank.service.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
