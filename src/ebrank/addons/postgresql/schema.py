"""The tables of a store in PostgreSQL."""

from __future__ import annotations

from ebrank.service.store.schema import MIGRATION, Schema
from ebrank.service.store.tables import BEGIN, INDEXES, TABLES

TYPES = {
    "identity": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "number": "bigint",
    "int": "integer",
    "small": "smallint",
    "bool": "boolean",
    "real": "float8",
    "text": 'text COLLATE "C"',
    **dict.fromkeys(("bytes", "floats", "reals", "bools"), "bytea"),
    **dict.fromkeys(("numbers", "texts", "places"), "text"),
}
# Room for the next version of a row that changes often; and keys. The query leads every key that is
# unique, so that a cluster can be cut along it; other indexes are local to a part.
_ENDS = {
    "queries": ") WITH (fillfactor = 50)",
    "items": ") WITH (fillfactor = 80)",
    **dict.fromkeys(("evidence", "snapshot", "arm_sums"), ") WITH (fillfactor = 70)"),
    "rankings": ", UNIQUE (id, query))",
    "events": ", PRIMARY KEY (query, ranking_id, place, type))",
}
# What the latest writes to a query added to counts, in turn; see `News`.
_CHANGES = """CREATE UNLOGGED TABLE changes (
    query bigint NOT NULL, turn smallint NOT NULL, version bigint NOT NULL, news text NOT NULL,
    PRIMARY KEY (query, turn)) WITH (fillfactor = 50)"""
_SERVERS = """CREATE UNLOGGED TABLE servers (
    name text PRIMARY KEY, seen timestamptz NOT NULL, about text NOT NULL)"""

POSTGRESQL = Schema(
    "schema",
    5,
    (
        *(table.made(TYPES, _ENDS.get(table.name, ")")) for table in TABLES),
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
    MIGRATION,
)
