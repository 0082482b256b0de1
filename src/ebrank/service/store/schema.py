"""The tables of a store in each database: what makes them, and those of an earlier version.

| version | in a folder | in PostgreSQL |
|---|---|---|
| with retracted entries instead of bots | 7 | 5 |
| with arms of experiments | 6 | 4 |
| before | 5 | 3 |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ebrank.service.store.driver import StoreError
from ebrank.service.store.tables import ARM_SUMS, BEGIN, INDEXES, TABLES


class Schema(NamedTuple):
    """The tables in one kind of database.

    Attributes:
        place: what a store is in, for people.
        version: which this ebrank reads.
        made: statements that make the tables of an empty database.
        done: the statement that notes that they are of this version.
        migrations: what makes the tables of a version those of the next.
    """

    place: str
    version: int
    made: Sequence[str]
    done: str
    migrations: Mapping[int, Sequence[str]]

    def check(self, version: int, name: str) -> None:
        """Raise unless the store with a name for people is of this version."""
        if version != self.version:
            newer = version > self.version
            remedy = "Upgrade ebrank" if newer else "Run `ebrank store migrate` on it"
            raise StoreError(
                f"{name}: a store of version {version}; this ebrank reads version {self.version}. "
                f"{remedy}, or name another {self.place}."
            )

    def steps(self, version: int, name: str) -> Iterator[str]:
        """Yield the statements that bring a store up to this version; none if it is newer.

        Raises:
            StoreError: if there is no way.
        """
        for step in range(version, self.version):
            if step not in self.migrations:
                raise StoreError(
                    f"{name}: a store of version {version}, too old to migrate. Use the ebrank "
                    f"that wrote it, or name another {self.place}."
                )
            yield from self.migrations[step]
        if version < self.version:
            yield self.done


_NEW_COLUMNS = {"rankings": ("arm", "token"), "models": ("arms",)}


def _with_arms(dialect: str) -> Iterator[str]:
    """Yield what adds the arms of experiments: the columns are those that `tables` declares."""
    for table in TABLES:
        for name in _NEW_COLUMNS.get(table.name, ()):
            kind = next(getattr(c.kind, dialect) for c in table.columns if c.name == name)
            yield f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}"
    yield ARM_SUMS.made(dialect).replace(ARM_SUMS.name, "trials", 1)


_RENAMED = (
    "ALTER TABLE rankings RENAME COLUMN bot TO retracted",
    "ALTER TABLE events RENAME COLUMN bot TO retracted",
    "ALTER TABLE trials RENAME TO arm_sums",
)

APPLICATION_ID = 0x45425231  # "EBR1"
SQLITE = Schema(
    "folder",
    7,
    (
        *(table.made("sqlite") for table in TABLES),
        *INDEXES,
        BEGIN,
        f"PRAGMA application_id = {APPLICATION_ID}",
    ),
    "PRAGMA user_version = 7",
    {5: tuple(_with_arms("sqlite")), 6: _RENAMED},
)

# What the latest writes to a query added to counts, in turn; see `News`.
_CHANGES = """CREATE UNLOGGED TABLE changes (
    query bigint NOT NULL, turn smallint NOT NULL, version bigint NOT NULL, news text NOT NULL,
    PRIMARY KEY (query, turn)) WITH (fillfactor = 50)"""
_SERVERS = """CREATE UNLOGGED TABLE servers (
    name text PRIMARY KEY, seen timestamptz NOT NULL, about text NOT NULL)"""

# The query leads every key that is unique, so that a cluster can be cut along it; other indexes are
# local to a part.
POSTGRESQL = Schema(
    "schema",
    5,
    (
        *(table.made("postgresql") for table in TABLES),
        *INDEXES,
        "CREATE INDEX rankings_order ON rankings (seq)",
        "CREATE INDEX events_order ON events (seq)",
        "CREATE SEQUENCE writes",
        _CHANGES,
        _SERVERS,
        BEGIN,
        "ALTER TABLE state ADD COLUMN schema_version integer NOT NULL DEFAULT 5",
    ),
    "UPDATE state SET schema_version = 5",
    {3: tuple(_with_arms("postgresql")), 4: _RENAMED},
)
