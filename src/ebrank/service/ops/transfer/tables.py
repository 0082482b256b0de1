"""The tables of an export: their columns, and how entries become rows and entries again.

Times are seconds since 1970. `position` is the place in the log, which rankings and events share;
`query` in `items` and `snapshot` stands in the order in which queries were first given.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

from ebrank.behavior import FIELDS
from ebrank.extras import import_extra
from ebrank.paths import expanded
from ebrank.service.store.records import EventEntry, Operation, QueryState, RankingEntry
from ebrank.service.store.rows import rows_of

if TYPE_CHECKING:
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]

MANIFEST = "export.json"
FORMAT, VERSION = "ebrank export", 1
ROWS_AT_ONCE = 1000  # read together
TABLES = ("items", "snapshot", "rankings", "events", "minutes", "models")

_COUNTERS = "shown:int64 clicks:int64 weighted_clicks:double exposure:double first_shown:double?"
_COLUMNS = {
    "items": f"query:string item:string entered:double active:bool features:floats {_COUNTERS}",
    "snapshot": f"query:string item:string {_COUNTERS}",
    "rankings": "position:int64 id:string query:string time:double model:int64 items:strings "
    "examination:doubles counted:bool explored:bools relevance:doubles cost:double user:string? "
    "would_rank:strings",
    "events": "position:int64 event_id:string ranking_id:string query:string item:string "
    "type:string rank:int64 examination:double shows:bool time:double received:double",
    "minutes": "start:double name:string value:double",
    "models": "version:int64 created:double rows:int64 validation_loss:double? "
    "previous_loss:double? activated:bool reason:string document:binary",
}
_OF_RANKING = tuple(field.name for field in fields(RankingEntry))
_OF_EVENT = tuple(field.name for field in fields(EventEntry))


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
    kinds = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "binary": pa.binary(),
        "floats": pa.list_(pa.float32()),
        "doubles": pa.list_(pa.float64()),
        "bools": pa.list_(pa.bool_()),
        "strings": pa.list_(pa.string()),
    }
    columns = (column.split(":") for column in _COLUMNS[table].split())
    return pa.schema(
        [
            pa.field(name, kinds[kind.rstrip("?")], nullable=kind.endswith("?"))
            for name, kind in columns
        ]
    )


def item_rows(state: QueryState) -> list[Row]:
    """Return the rows of `items` of a query."""
    features = state.features
    return [
        {"query": state.query, "item": row.id, "features": features[place]}
        | {name: getattr(row, name) for name in ("entered", "active", *FIELDS, "first_shown")}
        for place, row in enumerate(rows_of(state))
    ]


def snapshot_rows(state: QueryState) -> list[Row]:
    """Return the rows of `snapshot` of a query: one for each of `items`, in the same order."""
    return [
        {"query": state.query, "item": row.id}
        | {name: getattr(row, name) for name in (*FIELDS, "first_shown")}
        for row in rows_of(state)
    ]


def entry_row(position: int, entry: Operation) -> Row:
    """Return the row of `rankings` or `events`."""
    names = _OF_RANKING if isinstance(entry, RankingEntry) else _OF_EVENT
    return {"position": position} | {name: getattr(entry, name) for name in names}


def ranking_of(row: Row) -> tuple[int, Operation]:
    """Return the position and the entry of a row of `rankings`."""
    position = row.pop("position")
    lists = ("items", "examination", "explored", "relevance", "would_rank")
    return position, RankingEntry(**row | {name: tuple(row[name]) for name in lists})


def event_of(row: Row) -> tuple[int, Operation]:
    """Return the position and the entry of a row of `events`."""
    return row.pop("position"), EventEntry(**row)
