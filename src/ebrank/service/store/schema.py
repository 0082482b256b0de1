"""The version of a store's tables: what makes them, and those of the version before.

| version | in a folder | in PostgreSQL |
|---|---|---|
| with sums of arms | 7 | 5 |
| before | 6 | 4 |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ebrank.service.store.driver import StoreError
from ebrank.service.store.tables import BEGIN, INDEXES, TABLES


class Schema(NamedTuple):
    """The tables in one kind of database.

    Attributes:
        place: what a store is in, for people.
        version: which this ebrank reads.
        made: statements that make the tables of an empty database.
        done: the statement that notes that they are of this version.
        migration: what makes the tables of the version before these.
    """

    place: str
    version: int
    made: Sequence[str]
    done: str
    migration: Sequence[str]

    def check(self, version: int, name: str) -> None:
        """Raise unless the store with a name for people is of this version."""
        if version != self.version:
            newer = version > self.version
            remedy = "Upgrade ebrank" if newer else "Run `ebrank store migrate` on it"
            raise StoreError(
                f"{name}: a store of version {version}; this ebrank reads version {self.version}. "
                f"{remedy}, or name another {self.place}."
            )

    def steps(self, version: int, name: str) -> Sequence[str]:
        """Return the statements that bring a store up to this version; none if it is newer.

        Raises:
            StoreError: if there is no way.
        """
        if version >= self.version:
            return ()
        if version < self.version - 1:
            raise StoreError(
                f"{name}: a store of version {version}, too old to migrate. Use the ebrank that "
                f"wrote it, or name another {self.place}."
            )
        return (*self.migration, self.done)


MIGRATION = (
    "ALTER TABLE rankings RENAME COLUMN bot TO retracted",
    "ALTER TABLE events RENAME COLUMN bot TO retracted",
    "ALTER TABLE trials RENAME TO arm_sums",
)

APPLICATION_ID = 0x45425231  # "EBR1"
SQLITE = Schema(
    "folder",
    7,
    (
        *(table.made() for table in TABLES),
        *INDEXES,
        BEGIN,
        f"PRAGMA application_id = {APPLICATION_ID}",
    ),
    "PRAGMA user_version = 7",
    MIGRATION,
)
