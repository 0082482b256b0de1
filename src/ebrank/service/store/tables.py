"""What a store keeps, declared once: each table, its columns, and what leaves in an export.

The statements that make the tables in SQLite and PostgreSQL, the types of log rows, the columns of
Parquet files and their description in the docs follow from this.

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


class Kind(NamedTuple):
    """A type of column: in SQLite, in PostgreSQL, in Parquet, and of its values in Python."""

    sqlite: str
    postgresql: str
    parquet: str
    python: tuple[type, ...]


_IDENTITY = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
KINDS = {
    "identity": Kind("INTEGER PRIMARY KEY AUTOINCREMENT", _IDENTITY, "int64", (int,)),
    "number": Kind("INTEGER", "bigint", "int64", (int,)),
    "int": Kind("INTEGER", "integer", "int64", (int,)),
    "small": Kind("INTEGER", "smallint", "int64", (int,)),
    "bool": Kind("INTEGER", "boolean", "bool", (int, bool)),
    "real": Kind("REAL", "float8", "double", (float,)),
    "text": Kind("TEXT", 'text COLLATE "C"', "string", (str,)),
    "bytes": Kind("BLOB", "bytea", "binary", (bytes,)),
    "floats": Kind("BLOB", "bytea", "floats", (bytes,)),
    "reals": Kind("BLOB", "bytea", "doubles", (bytes,)),
    "bools": Kind("BLOB", "bytea", "bools", (bytes,)),
    "numbers": Kind("TEXT", "text", "ints", (str,)),  # a list as JSON, as those below
    "texts": Kind("TEXT", "text", "strings", (str,)),
    "places": Kind("TEXT", "text", "strings", (str,)),  # of items: their names in an export
}


class StoreColumn(NamedTuple):
    """A column of a table.

    Attributes:
        name: its name.
        kind: its type.
        null: whether it may be empty; an empty list is.
        out: its name and type in an export, with `?` if it may be null; empty if it does not leave.
    """

    name: str
    kind: Kind
    null: bool
    out: str

    def holds(self, value: object) -> bool:
        """Return whether it may hold a value: SQLite keeps any."""
        return isinstance(value, self.kind.python) or (self.null and value is None)


def _column(text: str) -> StoreColumn:
    """Return a column written as `name:kind`, with `?` if it may be null.

    What it is in an export, if that is something else, follows a `>`.

    >>> _column("user:text?").out, _column("place:int>item:string").out, _column("number:int>").out
    ('user:string?', 'item:string', '')
    """
    here, other, there = text.partition(">")
    name, kind = here.rstrip("?").split(":")
    null, parquet = here.endswith("?"), KINDS[kind].parquet
    optional = "?" if null and not parquet.endswith("s") else ""
    return StoreColumn(name, KINDS[kind], null, there if other else f"{name}:{parquet}{optional}")


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
        key: the columns of its primary key, if that is the same in both databases.
        adds: the columns whose values an insert can add to those of a row that is there.
        more: its other constraints in SQL.
        sqlite: what only SQLite has: more constraints, and what follows them.
        postgresql: the same of PostgreSQL.
        about: what its rows are, for the docs.
        leaves: whether it is part of an export.
    """

    def __init__(
        self,
        name: str,
        columns: str,
        key: str = "",
        *,
        adds: str = "",
        more: str = "",
        sqlite: str = ")",
        postgresql: str = ")",
        about: str = "",
        leaves: bool = True,
    ) -> None:
        self.name = name
        self.columns = [_column(text) for text in columns.split()]
        self.names = tuple(each.name for each in self.columns if each.kind != KINDS["identity"])
        self.about = about
        self.leaves = leaves
        self._key = key.split()
        self._adds = adds.split()
        self._more = more
        self._tails = {"sqlite": sqlite, "postgresql": postgresql}

    def made(self, dialect: str) -> str:
        """Return the statement that makes it, in `sqlite` or `postgresql`."""
        columns = [
            f'"{column.name}" {getattr(column.kind, dialect)}{"" if column.null else " NOT NULL"}'
            for column in self.columns
        ]
        key = f"PRIMARY KEY ({', '.join(self._key)})" if self._key else ""
        parts = ", ".join(part for part in (*columns, key, self._more) if part)
        return f"CREATE TABLE {self.name} ({parts}{self._tails[dialect]}"

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

    def types(self, names: Iterable[str]) -> list[str]:
        """Return the types of columns in PostgreSQL, without how they are compared."""
        kinds = {column.name: column.kind.postgresql.split()[0] for column in self.columns}
        return [kinds[name] for name in names]


_COUNTS = (
    "query:number>query:string place:int>item:string outcome:small slot:small count:int epoch:int",
    "query place outcome slot",
)
_BY_PLACE = ") WITHOUT ROWID"  # rows that are read together lie side by side
_ROOM = ") WITH (fillfactor = {})"  # for the next version of a row that changes often

# `version` counts the writes to a query from its life on, `size` its items; `used` is the time of
# its latest list or event, or of when it was added. No number is used again: the log may hold
# entries of a query that is being deleted. In PostgreSQL each write locks its row.
QUERIES = StoreTable(
    "queries",
    "number:identity name:text version:number size:int used:real",
    more="UNIQUE (name)",
    postgresql=_ROOM.format(50),
    leaves=False,
)
ITEMS = StoreTable(
    "items",
    "query:number>query:string place:int> id:text>item:string entered:real active:bool "
    "first_shown:real?",
    "query place",
    more="UNIQUE (query, id)",
    sqlite=_BY_PLACE,
    postgresql=_ROOM.format(80),
)
FEATURES = StoreTable(
    "features",
    "query:number place:int numbers:floats",
    "query place",
    sqlite=_BY_PLACE,
    leaves=False,  # but with the items
)
CATALOG = StoreTable(
    "catalog",
    "id:text>item:string version:number> numbers:floats?>features:floats",
    "id",
    sqlite=_BY_PLACE,
    about="shared by all queries",
)
EVIDENCE = StoreTable(
    "evidence",
    *_COUNTS,
    adds="count",
    sqlite=_BY_PLACE,
    postgresql=_ROOM.format(70),
    about="what users did, zero counts omitted",
)
SNAPSHOT = StoreTable(
    "snapshot",
    *_COUNTS,
    adds="count",
    sqlite=_BY_PLACE,
    postgresql=_ROOM.format(70),
    about="the sum of everything rolled up",
)
COUNTS = EVIDENCE.names
# Rankings and events share one sequence: the order of the log.
RANKINGS = StoreTable(
    "rankings",
    "seq:number>position:int64 id:text query:number>query:string time:real model:int items:places "
    "counted:bool explored:bools relevance:reals cost:real user:text? "
    "offset:int continues:text? seen:numbers? retracted:bool epoch:int arm:text? token:text?",
    sqlite=", PRIMARY KEY (seq), UNIQUE (id))",
    postgresql=", UNIQUE (id, query))",
    about="lists by rank, best first",
)
EVENTS = StoreTable(
    "events",
    "seq:number>position:int64 event_id:text ranking_id:text query:number>query:string "
    "place:int>item:string type:text rank:int outcome:small shows:bool time:real received:real "
    "replaces:small retracted:bool value:real? epoch:int",
    more="UNIQUE (query, event_id)",
    sqlite=", PRIMARY KEY (seq), UNIQUE (ranking_id, place, type))",
    postgresql=", PRIMARY KEY (query, ranking_id, place, type))",
)
MINUTES = StoreTable(
    "minutes",
    "start:real name:text value:real",
    "start name",
    adds="value",
    sqlite=_BY_PLACE,
    about="sums for the dashboard",
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
    sqlite=_BY_PLACE,
    postgresql=_ROOM.format(70),
    about="sums of experiments",
)
DELETIONS = StoreTable(
    "deletions",
    "number:identity> time:real kind:text digest:text queries:int rankings:int events:int",
    about="proofs of deletions",
)
# Deletions whose query or user may still be in the log, by the numbers of their proofs.
UNFINISHED = StoreTable(
    "unfinished", "proof:number query:number? user:text?", "proof", leaves=False
)
META = StoreTable("meta", "key:text value:text", "key", sqlite=_BY_PLACE, leaves=False)
# One row: the active model, the latest time that no query has, how far the log of a folder was
# rolled up, the version of the catalog, and how many queries were deleted.
STATE = StoreTable(
    "state",
    "one:int active_model:int last_time:real rolled_up:number catalog:number lives:number",
    "one",
    more="CHECK (one = 1)",
    leaves=False,
)

_LOG = (RANKINGS, EVENTS)
_OF_QUERIES = (QUERIES, ITEMS, FEATURES, CATALOG, EVIDENCE, SNAPSHOT)
TABLES = (*_OF_QUERIES, *_LOG, MINUTES, MODELS, ARM_SUMS, DELETIONS, UNFINISHED, META, STATE)
INDEXES = ("CREATE INDEX catalog_versions ON catalog (version)",)
BEGIN = "INSERT INTO state VALUES (1, 0, 0.0, 0, 0, 0)"
ENDS = """(SELECT min(seq) AS seq FROM rankings UNION ALL SELECT max(seq) FROM rankings
    UNION ALL SELECT min(seq) FROM events UNION ALL SELECT max(seq) FROM events) AS ends"""
"""The first and the last numbers of the log; an index has each."""
EXPORTED: Mapping[str, tuple[str, ...]] = {
    table.name: (
        *(column.out for column in table.columns if column.out),
        *(("features:floats",) if table is ITEMS else ()),
    )
    for table in TABLES
    if table.leaves
}
"""The columns of an export by table, each as `name:type`, with `?` if it may be null."""


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
