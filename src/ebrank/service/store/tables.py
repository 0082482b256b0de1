"""What a store keeps, declared once: each table and its columns.

The statements that make the tables, the types of log rows and the columns of an export follow from
this. Types are those of SQLite; another database says how it calls them.

A row of the log names its query by a number, and items by their places in the query: a place is
short, and it remains if a name is deleted. In an export both are names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ebrank.typing import Features

Row: TypeAlias = tuple[Any, ...]
Names: TypeAlias = tuple[str, ...]
Existing: TypeAlias = Literal["refuse", "keep", "replace", "add"]
"""What an insert does about a row whose key is there: fail, leave it, replace it, or add to it."""
FLOAT32 = np.dtype("<f4")


TYPES: Mapping[str, str] = {
    "identity": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "number": "INTEGER",
    "int": "INTEGER",
    "small": "INTEGER",
    "bool": "INTEGER",
    "real": "REAL",
    "text": "TEXT",
    "bytes": "BLOB",
    "floats": "BLOB",
    "reals": "BLOB",
    "bools": "BLOB",
    "numbers": "TEXT",  # a list as JSON, as those below
    "texts": "TEXT",
    "places": "TEXT",  # of items: their names in an export
}
"""Kinds of columns, and their types."""
_PYTHON = {"INTEGER": int, "REAL": float, "TEXT": str, "BLOB": bytes}


class StoreColumn(NamedTuple):
    """A column of a table.

    Attributes:
        name: its name.
        kind: of `TYPES`.
        null: whether it may be empty; an empty list is.
        out: its name and type in an export, if they are not its own; empty if it does not leave.
    """

    name: str
    kind: str
    null: bool
    out: str | None

    def holds(self, value: object) -> bool:
        """Return whether it may hold a value: SQLite keeps any."""
        kind = _PYTHON[TYPES[self.kind].split()[0]]
        return isinstance(value, kind) or (self.null and value is None)


def _column(text: str) -> StoreColumn:
    """Return a column written as `name:kind`, with `?` if it may be null.

    What it is in an export, if that is something else, follows a `>`.

    >>> _column("user:text?")
    StoreColumn(name='user', kind='text', null=True, out=None)
    >>> _column("place:int>item:string").out, _column("number:int>").out
    ('item:string', '')
    """
    here, other, there = text.partition(">")
    name, kind = here.rstrip("?").split(":")
    return StoreColumn(name, kind, here.endswith("?"), there if other else None)


def prefixed(table: str, names: Iterable[str]) -> str:
    """Return columns of a table as SQL.

    >>> prefixed("t", ["id", "offset"])
    't."id", t."offset"'
    """
    return ", ".join(f'{table}."{name}"' for name in names)


class StoreTable:
    """A table.

    Args:
        name: its name.
        columns: its columns, in the order of an export; see `_column`.
        key: the columns of its primary key, if that is the same in all databases.
        adds: the columns whose values an insert can add to those of a row that is there.
        more: its other constraints in SQL.
        end: what ends the statement that makes it, with constraints that only SQLite has.
    """

    def __init__(
        self,
        name: str,
        columns: str,
        key: str = "",
        *,
        adds: str = "",
        more: str = "",
        end: str = ")",
    ) -> None:
        self.name = name
        self.columns = [_column(text) for text in columns.split()]
        self.names = tuple(each.name for each in self.columns if each.kind != "identity")
        self._key = key.split()
        self._adds = adds.split()
        self._more = more
        self._end = end

    def made(self, types: Mapping[str, str] = TYPES, end: str = "") -> str:
        """Return the statement that makes it; another database has other types and another end."""
        columns = [
            f'"{column.name}" {types[column.kind]}{"" if column.null else " NOT NULL"}'
            for column in self.columns
        ]
        key = f"PRIMARY KEY ({', '.join(self._key)})" if self._key else ""
        parts = ", ".join(part for part in (*columns, key, self._more) if part)
        return f"CREATE TABLE {self.name} ({parts}{end or self._end}"

    def inserted(
        self, source: str, columns: Sequence[str] = (), existing: Existing = "refuse"
    ) -> str:
        """Return the statement that inserts the rows of a source, such as `VALUES (?, ?)`.

        Without `columns`, rows hold all but an identity, which the database numbers.
        """
        names = ", ".join(f'"{name}"' for name in columns or self.names)
        statement = f"INSERT INTO {self.name} ({names}) {source}"
        if existing == "refuse":
            return statement
        values = (f'"{name}" = excluded."{name}"' for name in self.names if name not in self._key)
        sums = (f'"{name}" = {self.name}."{name}" + excluded."{name}"' for name in self._adds)
        changes = ", ".join(sums if existing == "add" else values)
        change = "NOTHING" if existing == "keep" else f"UPDATE SET {changes}"
        return f"{statement} ON CONFLICT ({', '.join(self._key)}) DO {change}"


_COUNTS = (
    "query:number>query:string place:int>item:string outcome:small slot:small count:int epoch:int",
    "query place outcome slot",
)
_BY_PLACE = ") WITHOUT ROWID"  # rows that are read together lie side by side

# `version` counts the writes to a query from its life on, `size` its items; `used` is the time of
# its latest list or event, or of when it was added. No number is used again: the log may hold
# entries of a query that is being deleted. In PostgreSQL each write locks its row.
QUERIES = StoreTable(
    "queries",
    "number:identity name:text version:number size:int used:real",
    more="UNIQUE (name)",
)
ITEMS = StoreTable(
    "items",
    "query:number>query:string place:int> id:text>item:string entered:real active:bool "
    "first_shown:real?",
    "query place",
    more="UNIQUE (query, id)",
    end=_BY_PLACE,
)
FEATURES = StoreTable(
    "features", "query:number place:int numbers:floats", "query place", end=_BY_PLACE
)
CATALOG = StoreTable(
    "catalog",
    "id:text>item:string version:number> numbers:floats?>features:floats",
    "id",
    end=_BY_PLACE,
)
EVIDENCE = StoreTable("evidence", *_COUNTS, adds="count", end=_BY_PLACE)
SNAPSHOT = StoreTable("snapshot", *_COUNTS, adds="count", end=_BY_PLACE)
COUNTS = EVIDENCE.names
# Rankings and events share one sequence: the order of the log.
RANKINGS = StoreTable(
    "rankings",
    "seq:number>position:int64 id:text query:number>query:string time:real model:int items:places "
    "counted:bool explored:bools relevance:reals cost:real user:text? "
    "offset:int continues:text? seen:numbers? retracted:bool epoch:int arm:text? token:text?",
    end=", PRIMARY KEY (seq), UNIQUE (id))",
)
EVENTS = StoreTable(
    "events",
    "seq:number>position:int64 event_id:text ranking_id:text query:number>query:string "
    "place:int>item:string type:text rank:int outcome:small shows:bool time:real received:real "
    "replaces:small retracted:bool value:real? epoch:int",
    more="UNIQUE (query, event_id)",
    end=", PRIMARY KEY (seq), UNIQUE (ranking_id, place, type))",
)
MINUTES = StoreTable(
    "minutes", "start:real name:text value:real", "start name", adds="value", end=_BY_PLACE
)
MODELS = StoreTable(
    "models",
    "version:int created:real rows:number validation_loss:real? previous_loss:real? "
    "activated:bool reason:text features:texts document:bytes arms:text?",
    "version",
)
ARM_SUMS = StoreTable(
    "arm_sums",
    "experiment:text stretch:int arm:text cell:int lists:number clicks:number outcome:real "
    "found:number",
    "experiment stretch arm cell",
    adds="lists clicks outcome found",
    end=_BY_PLACE,
)
DELETIONS = StoreTable(
    "deletions",
    "number:identity> time:real kind:text digest:text queries:int rankings:int events:int",
)
# Deletions whose query or user may still be in the log, by the numbers of their proofs.
UNFINISHED = StoreTable("unfinished", "proof:number query:number? user:text?", "proof")
META = StoreTable("meta", "key:text value:text", "key", end=_BY_PLACE)
# One row: the active model, the latest time that no query has, how far the log of a folder was
# rolled up, the version of the catalog, and how many queries were deleted.
STATE = StoreTable(
    "state",
    "one:int active_model:int last_time:real rolled_up:number catalog:number lives:number",
    "one",
    more="CHECK (one = 1)",
)

_LOG = (RANKINGS, EVENTS)
_OF_QUERIES = (QUERIES, ITEMS, FEATURES, CATALOG, EVIDENCE, SNAPSHOT)
TABLES = (*_OF_QUERIES, *_LOG, MINUTES, MODELS, ARM_SUMS, DELETIONS, UNFINISHED, META, STATE)
INDEXES = ("CREATE INDEX catalog_versions ON catalog (version)",)
BEGIN = "INSERT INTO state VALUES (1, 0, 0.0, 0, 0, 0)"
ENDS = """(SELECT min(seq) AS seq FROM rankings UNION ALL SELECT max(seq) FROM rankings
    UNION ALL SELECT min(seq) FROM events UNION ALL SELECT max(seq) FROM events) AS ends"""
"""The first and the last numbers of the log; an index has each."""


# --- features ------------------------------------------------------------------------------------


def packed(numbers: Sequence[float] | Features) -> bytes:
    """Return a row of features as the tables have it."""
    return np.array(numbers, FLOAT32).tobytes()


def unpacked(blob: bytes) -> Features:
    """Return a row of features; the caller owns it."""
    return np.frombuffer(blob, FLOAT32).astype(np.float32)


def features_of(blobs: Sequence[bytes]) -> Features:
    """Return rows of features below each other; the caller owns them."""
    width = len(blobs[0]) if blobs else 0
    if all(len(blob) == width for blob in blobs):
        numbers = np.frombuffer(b"".join(blobs), FLOAT32).astype(np.float32)
        return numbers.reshape(len(blobs), width // FLOAT32.itemsize)
    return padded([np.frombuffer(blob, FLOAT32) for blob in blobs])


def padded(rows: Sequence[Sequence[float] | Features]) -> Features:
    """Return rows of features as a matrix, with short rows filled up with NaN.

    >>> padded([(1.0,), (2.0, 3.0)]).tolist()
    [[1.0, nan], [2.0, 3.0]]
    """
    lengths = list(map(len, rows))
    width = max(lengths, default=0)
    if min(lengths, default=0) == width:
        return np.array(rows, np.float32).reshape(len(rows), width)
    features = np.full((len(rows), width), np.nan, np.float32)
    for place, row in enumerate(rows):
        features[place, : len(row)] = row
    return features
