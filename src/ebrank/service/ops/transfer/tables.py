"""The tables of an export, and how records become rows and records again.

`ebrank.service.store.tables` declares the columns.

Times are seconds since 1970. `position` is the place in the log, which rankings and events share;
`query` in `items` and `snapshot` is in the order in which queries were added.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import msgspec

from ebrank.environment.extras import import_extra
from ebrank.environment.paths import expanded
from ebrank.service.store.records import (
    Deletion,
    EventEntry,
    ModelRecord,
    QueryState,
    RankingEntry,
)
from ebrank.service.store.rows import count_rows, item_rows
from ebrank.service.store.tables import EXPORTED

if TYPE_CHECKING:
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]
Record = TypeVar("Record")

MANIFEST = "export.json"
VERSION = 4
ROWS_AT_ONCE = 1000  # read together

TABLES = tuple(EXPORTED)
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind) if field.compare)
    for kind in (RankingEntry, EventEntry, ModelRecord, Deletion)
}
OF_ITEM = ("item", "entered", "active", "first_shown")
OF_COUNT = ("outcome", "slot", "count", "epoch")


class Manifest(msgspec.Struct, kw_only=True):
    """What an export says about itself, written last."""

    format: Literal["ebrank export"] = "ebrank export"
    version: int = VERSION
    last_time: float
    active_model: int
    settings: dict[str, str]
    rows: dict[str, int]


def is_export(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is the folder of an export that was finished."""
    return (expanded(path) / MANIFEST).is_file()


def arrow() -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return pyarrow, or say how to install it."""
    import_extra("pyarrow.parquet", extra="service", purpose="to read and write exports")
    return import_extra("pyarrow", extra="service", purpose="to read and write exports")


def schema(table: str) -> pa.Schema:
    """Return the columns of a table; only those marked with `?` may be null."""
    pa = arrow()

    def column(text: str) -> Any:  # noqa: ANN401 (pyarrow has no types)
        name, kind = text.rstrip("?").replace(":ints", ":int64s").split(":")
        cell = pa.type_for_alias(kind.rstrip("s"))
        return pa.field(name, pa.list_(cell) if kind.endswith("s") else cell, text.endswith("?"))

    return pa.schema([column(text) for text in EXPORTED[table]])


def rows_of_items(state: QueryState) -> list[Row]:
    """Return the rows of `items` of a query."""
    return [
        {"query": state.query, "features": features, **dict(zip(OF_ITEM, row, strict=True))}
        for features, row in zip(state.features, item_rows(state), strict=True)
    ]


def rows_of_counts(state: QueryState) -> list[Row]:
    """Return the rows of `evidence` or `snapshot` of a query, those of its first item first."""
    return [
        {"query": state.query, "item": state.ids[place], **dict(zip(OF_COUNT, row, strict=True))}
        for place, *row in count_rows(state)
    ]


def row_of(record: object) -> Row:
    """Return the row of an entry of the log, a model or a deletion."""
    return {name: getattr(record, name) for name in _FIELDS[type(record)]}


def record_of(kind: type[Record], row: Row) -> Record:
    """Return the record of a row; the inverse of `row_of`."""
    values = ((name, row[name]) for name in _FIELDS[kind])
    return kind(**{name: tuple(cell) if isinstance(cell, list) else cell for name, cell in values})
