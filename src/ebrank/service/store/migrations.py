"""Versions of the tables, and how a store of an earlier version becomes one of this.

| version | in a folder | in PostgreSQL |
|---|---|---|
| the same tables in both | 5 | 3 |
| with the time of last use of each query | 5 | 2 |
| before | 4 | 1 |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ebrank.service.store.driver import StoreError
from ebrank.service.store.tables import FEATURES, UNFINISHED

VERSIONS = {"sqlite": 5, "postgresql": 3}

CHANGES = """CREATE UNLOGGED TABLE changes (
    query bigint NOT NULL, turn smallint NOT NULL, version bigint NOT NULL, news text NOT NULL,
    PRIMARY KEY (query, turn)) WITH (fillfactor = 50)"""
"""In PostgreSQL: what the latest writes to a query added to counts, in turn; see `News`."""
SERVERS = """CREATE UNLOGGED TABLE servers (
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


MIGRATIONS: Mapping[str, dict[int, Sequence[str]]] = {
    "sqlite": {
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
    },
    "postgresql": {
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
            CHANGES,
            SERVERS,
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
    },
}
"""What makes the tables of a version those of the next."""


def check(dialect: str, version: int, name: str, place: str) -> None:
    """Raise unless a store is of this version.

    Args:
        dialect: of its database.
        version: which it has.
        name: of the store, for people.
        place: what to name instead, if it cannot be used.
    """
    newest = VERSIONS[dialect]
    if version != newest:
        remedy = "Upgrade ebrank" if version > newest else "Run `ebrank store migrate` on it"
        raise StoreError(
            f"{name}: a store of version {version}; this ebrank reads version {newest}. "
            f"{remedy}, or name another {place}."
        )


def steps(dialect: str, version: int, name: str) -> Iterator[str]:
    """Yield the statements that bring a store up to this version.

    Raises:
        StoreError: if there is no way.
    """
    for step in range(version, VERSIONS[dialect]):
        if step not in MIGRATIONS[dialect]:
            raise StoreError(f"{name}: a store of version {version}, too old to migrate.")
        yield from MIGRATIONS[dialect][step]
