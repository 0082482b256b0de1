"""The tables of a store in each database: what makes them, and those of an earlier version.

| version | in a folder | in PostgreSQL |
|---|---|---|
| with arms of experiments | 6 | 4 |
| the same tables in both | 5 | 3 |
| with the time of last use of each query | 5 | 2 |
| before | 4 | 1 |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ebrank.service.store.driver import StoreError
from ebrank.service.store.tables import BEGIN, FEATURES, INDEXES, TABLES, TRIALS, UNFINISHED


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
                raise StoreError(f"{name}: a store of version {version}, too old to migrate.")
            yield from self.migrations[step]
        if version < self.version:
            yield self.done


_NEW_COLUMNS = {"rankings": ("arm", "teams", "propensities", "token"), "models": ("arms",)}


def _with_arms(dialect: str) -> Iterator[str]:
    """Yield what adds the arms of experiments: the columns are those that `tables` declares."""
    for table in TABLES:
        for name in _NEW_COLUMNS.get(table.name, ()):
            kind = next(getattr(c.kind, dialect) for c in table.columns if c.name == name)
            yield f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}"
    yield TRIALS.made(dialect)


APPLICATION_ID = 0x45425231  # "EBR1"
SQLITE = Schema(
    "folder",
    6,
    (
        *(table.made("sqlite") for table in TABLES),
        *INDEXES,
        BEGIN,
        f"PRAGMA application_id = {APPLICATION_ID}",
    ),
    "PRAGMA user_version = 6",
    {
        4: (
            # The first stores of this version lack it.
            UNFINISHED.made("sqlite", "IF NOT EXISTS unfinished"),
            "ALTER TABLE queries ADD COLUMN used REAL NOT NULL DEFAULT 0.0",
            # Nobody knows: none is idle yet.
            """UPDATE queries SET used = (SELECT max(last_time,
                coalesce((SELECT time FROM rankings ORDER BY seq DESC LIMIT 1), 0.0),
                coalesce((SELECT received FROM events ORDER BY seq DESC LIMIT 1), 0.0))
                FROM state)""",
        ),
        5: tuple(_with_arms("sqlite")),
    },
)

# What the latest writes to a query added to counts, in turn; see `News`.
_CHANGES = """CREATE UNLOGGED TABLE changes (
    query bigint NOT NULL, turn smallint NOT NULL, version bigint NOT NULL, news text NOT NULL,
    PRIMARY KEY (query, turn)) WITH (fillfactor = 50)"""
_SERVERS = """CREATE UNLOGGED TABLE servers (
    name text PRIMARY KEY, seen timestamptz NOT NULL, about text NOT NULL)"""

# Names were UTF-8 as bytes.
_TEXTS = {
    "queries": ("name",),
    "items": ("id",),
    "catalog": ("id",),
    "rankings": ("id", "user_hash", "continues"),
    "events": ("event_id", "ranking_id", "type"),
    "minutes": ("name",),
    "models": ("reason", "features"),
    "deletions": ("digest",),
    "meta": ("key", "value"),
}


def _as_texts() -> Iterator[str]:
    for table, columns in _TEXTS.items():
        changes = ", ".join(
            f"ALTER COLUMN {column} TYPE text COLLATE \"C\" USING convert_from({column}, 'UTF8')"
            for column in columns
        )
        yield f"ALTER TABLE {table} {changes}"


# The query leads every key that is unique, so that a cluster can be cut along it; other indexes are
# local to a part.
POSTGRESQL = Schema(
    "schema",
    4,
    (
        *(table.made("postgresql") for table in TABLES),
        *INDEXES,
        "CREATE INDEX rankings_order ON rankings (seq)",
        "CREATE INDEX events_order ON events (seq)",
        "CREATE SEQUENCE writes",
        _CHANGES,
        _SERVERS,
        BEGIN,
        "ALTER TABLE state ADD COLUMN schema_version integer NOT NULL DEFAULT 4",
    ),
    "UPDATE state SET schema_version = 4",
    {
        1: (
            "ALTER TABLE queries ADD COLUMN used float8",
            "UPDATE queries SET used = last_time",
            "ALTER TABLE queries ALTER COLUMN used SET NOT NULL",
        ),
        2: (
            "DROP FUNCTION write_log",
            "DROP FUNCTION put_items",
            "DROP TYPE given_event",
            "DROP TYPE given_first",
            "DROP TABLE changes",
            "DROP TABLE servers",
            _CHANGES,
            _SERVERS,
            *_as_texts(),
            FEATURES.made("postgresql"),
            "INSERT INTO features SELECT query, place, features FROM items",
            "ALTER TABLE items DROP COLUMN features",
            "ALTER TABLE catalog RENAME COLUMN features TO numbers",
            'ALTER TABLE rankings RENAME COLUMN user_hash TO "user"',
            'ALTER TABLE rankings RENAME COLUMN ranks_above TO "offset"',
            UNFINISHED.made("postgresql"),
            "ALTER TABLE state ADD COLUMN rolled_up bigint NOT NULL DEFAULT 0",
            """UPDATE state SET last_time =
                greatest(last_time, (SELECT max(last_time) FROM queries))""",
            "ALTER TABLE queries DROP COLUMN last_time",
        ),
        3: tuple(_with_arms("postgresql")),
    },
)
