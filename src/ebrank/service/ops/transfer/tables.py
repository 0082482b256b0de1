"""The tables of an export, and how entries become rows and entries again.

`ebrank.service.store.tables` declares the columns.

Times are seconds since 1970. `position` is the place in the log, which rankings and events share;
`query` in `items` and `snapshot` is in the order in which queries were added.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

from ebrank.environment.extras import import_extra
from ebrank.environment.paths import expanded
from ebrank.service.store.records import EventEntry, Operation, QueryState, RankingEntry
from ebrank.service.store.rows import count_rows, item_rows
from ebrank.service.store.tables import EXPORTED

if TYPE_CHECKING:
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]

MANIFEST = "export.json"
FORMAT, VERSION = "ebrank export", 3
ROWS_AT_ONCE = 1000  # read together

TABLES = tuple(EXPORTED)
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
    columns = (column.split(":") for column in EXPORTED[table])
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
