"""The tables of an export: their columns, and how entries become rows and entries again.

Times are seconds since 1970. `position` is the place in the log, which rankings and events share;
`query` in `items` and `snapshot` is in the order in which queries were added.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

from ebrank.extras import import_extra
from ebrank.paths import expanded
from ebrank.service.store.records import EventEntry, Operation, QueryState, RankingEntry
from ebrank.service.store.rows import count_rows, item_rows

if TYPE_CHECKING:
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]

MANIFEST = "export.json"
FORMAT, VERSION = "ebrank export", 3
ROWS_AT_ONCE = 1000  # read together

_COUNTS = "query:string item:string outcome:int64 slot:int64 count:int64 epoch:int64"
_COLUMNS = {
    "items": "query:string item:string entered:double active:bool first_shown:double? "
    "features:floats",
    "catalog": "item:string features:floats",
    "evidence": _COUNTS,
    "snapshot": _COUNTS,
    "rankings": "position:int64 id:string query:string time:double model:int64 items:strings "
    "counted:bool explored:bools relevance:doubles cost:double user:string? would_rank:strings "
    "offset:int64 continues:string? seen:ints bot:bool epoch:int64 contexts:ints",
    "events": "position:int64 event_id:string ranking_id:string query:string item:string "
    "type:string rank:int64 outcome:int64 shows:bool time:double received:double replaces:int64 "
    "bot:bool value:double? epoch:int64",
    "minutes": "start:double name:string value:double",
    "models": "version:int64 created:double rows:int64 validation_loss:double? "
    "previous_loss:double? activated:bool reason:string features:strings "
    "document:binary",
    "deletions": "time:double kind:string digest:string queries:int64 rankings:int64 events:int64",
}
TABLES = tuple(_COLUMNS)
_OF_RANKING = tuple(field.name for field in fields(RankingEntry) if field.compare)
_OF_EVENT = tuple(field.name for field in fields(EventEntry) if field.compare)


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
        "ints": pa.list_(pa.int64()),
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


def rows_of_items(state: QueryState) -> list[Row]:
    """Return the rows of `items` of a query."""
    return [
        {
            "query": state.query,
            "item": row.id,
            "entered": row.entered,
            "active": row.active,
            "first_shown": row.first_shown,
            "features": state.features[place],
        }
        for place, row in enumerate(item_rows(state))
    ]


def rows_of_counts(state: QueryState) -> list[Row]:
    """Return the rows of `evidence` or `snapshot` of a query, those of its first item first."""
    return [
        {
            "query": state.query,
            "item": state.ids[place],
            "outcome": outcome,
            "slot": slot,
            "count": count,
            "epoch": epoch,
        }
        for place, outcome, slot, count, epoch in count_rows(state)
    ]


def entry_row(position: int, entry: Operation) -> Row:
    """Return the row of `rankings` or `events`."""
    names = _OF_RANKING if isinstance(entry, RankingEntry) else _OF_EVENT
    return {"position": position} | {name: getattr(entry, name) for name in names}


def ranking_of(row: Row) -> tuple[int, Operation]:
    """Return the position and the entry of a row of `rankings`."""
    position = row.pop("position")
    lists = ("items", "explored", "relevance", "would_rank", "seen", "contexts")
    return position, RankingEntry(**row | {name: tuple(row[name]) for name in lists})


def event_of(row: Row) -> tuple[int, Operation]:
    """Return the position and the entry of a row of `events`."""
    return row.pop("position"), EventEntry(**row)
