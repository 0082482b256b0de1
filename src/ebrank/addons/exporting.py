"""`ebrank export`: a store as a folder of Parquet files; its tables, and how records become rows.

`ebrank.service.store.tables` declares the columns. Times are seconds since 1970. `position` is the
place in the log, which rankings and events share; `query` in `items` and `snapshot` is in the order
in which queries were added.

The manifest is written last, so a folder without one is an export that did not finish.

An export holds hashes of users' names but not the store's salt, without which nobody can tell whose
they are, not even by trying all names. Only its owner can read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ebrank.addons.tables import arrow
from ebrank.environment.files import make_private_file, make_private_folder, write_whole
from ebrank.service.ops.replay import listed, watched
from ebrank.service.store import records, tables
from ebrank.service.store.base import SALT, Progress, Store, StoreError
from ebrank.service.store.records import QueryState, RankingEntry
from ebrank.service.store.rows import count_rows, item_rows

if TYPE_CHECKING:
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]

MANIFEST = "export.json"
VERSION = 4
ROWS_AT_ONCE = 10_000
"""Rows in a group of a Parquet file."""

_TYPES = {
    **dict.fromkeys(("number", "int", "small"), "int64"),
    "bool": "bool",
    "real": "double",
    "text": "string",
    "bytes": "binary",
    "reals": "doubles",
    "bools": "bools",
    "numbers": "int64s",
    **dict.fromkeys(("texts", "places"), "strings"),
}
_LEFT_OUT = (tables.QUERIES, tables.FEATURES, tables.UNFINISHED, tables.META, tables.STATE)


def _column(column: tables.StoreColumn) -> str:
    """Return a column as `name:type`, with `?` if it may be null; empty if it does not leave."""
    if column.out is not None:
        return column.out
    kind = _TYPES[column.kind]
    return f"{column.name}:{kind}{'?' * (column.null and not kind.endswith('s'))}"


TABLES: Mapping[str, Sequence[str]] = {
    table.name: [
        *filter(None, map(_column, table.columns)),
        *(["features:floats"] if table is tables.ITEMS else []),
    ]
    for table in tables.TABLES
    if table not in _LEFT_OUT
}
"""The columns of each table of an export."""
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind) if field.compare)
    for kind in (RankingEntry, records.EventEntry, records.ModelRecord, records.Deletion)
}
OF_ITEM = ("item", "entered", "active", "first_shown")
OF_COUNT = ("outcome", "slot", "count", "epoch")


class Manifest(msgspec.Struct, kw_only=True):
    """What an export says about itself, written last."""

    format: str
    version: int
    last_time: float
    active_model: int
    settings: dict[str, str]
    rows: dict[str, int]


def schema(table: str) -> pa.Schema:
    """Return the columns of a table; only those marked with `?` may be null."""
    pa = arrow()

    def column(text: str) -> Any:  # noqa: ANN401 (pyarrow has no types)
        name, kind = text.rstrip("?").split(":")
        cell = pa.type_for_alias(kind.rstrip("s"))
        return pa.field(name, pa.list_(cell) if kind.endswith("s") else cell, text.endswith("?"))

    return pa.schema([column(text) for text in TABLES[table]])


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


class _ParquetFile:
    """A Parquet file that is written a group of rows at a time."""

    def __init__(self, folder: Path, name: str) -> None:
        self._arrow = arrow()
        self._schema = schema(name)
        path = folder / f"{name}.parquet"
        make_private_file(path)
        self._file = self._arrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[Row] = []
        self.count = 0

    def add(self, *rows: Row) -> None:
        self._rows += rows
        self.count += len(rows)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._write()

    def _write(self) -> None:
        rows, self._rows = self._rows, []
        try:
            self._file.write_batch(self._arrow.RecordBatch.from_pylist(rows, self._schema))
        except self._arrow.ArrowException as problem:
            raise StoreError(
                f"the store is damaged ({problem}). Run `ebrank check STORE` to see how far."
            ) from problem

    def close(self) -> None:
        self._write()
        self._file.close()


async def export(
    store: Store, folder: str | os.PathLike[str], progress: Progress | None = None
) -> dict[str, int]:
    """Write a store to a new folder; return the rows of each table.

    Raises:
        StoreError: if the folder exists and is not empty.
    """
    path = Path(folder)
    make_folder(path)
    with ExitStack() as stack:
        out = {name: _ParquetFile(path, name) for name in TABLES}
        for table in out.values():
            stack.callback(table.close)
        for query in await store.items.queries():
            current = listed(query, await store.items.load(query))
            snapshot = listed(query, await store.items.snapshot(query))
            out["items"].add(*rows_of_items(current))
            out["evidence"].add(*rows_of_counts(current))
            out["snapshot"].add(*rows_of_counts(snapshot))
        async for item, features in store.catalog.entries():
            out["catalog"].add({"item": item, "features": features})
        position = 0
        async for entry in watched(store, progress):
            name = "rankings" if isinstance(entry, RankingEntry) else "events"
            out[name].add({"position": position} | row_of(entry))
            position += 1
        for minute in await store.meta.minutes(0.0):
            for name, value in minute.values.items():
                out["minutes"].add({"start": minute.start, "name": name, "value": value})
        for record in await store.models.all():
            document = await store.models.document(record.version)
            arms = await store.models.arms(record.version)
            files = {"document": document, "arms": json.dumps(arms) if arms else None}
            out["models"].add(row_of(record) | files)
        out["arm_sums"].add(*(sums._asdict() for sums in await store.meta.arm_sums()))
        for deletion in await store.deletions.all():
            out["deletions"].add(row_of(deletion))
    counts = {name: table.count for name, table in out.items()}
    settings = await store.meta.all()
    manifest = Manifest(
        format="ebrank export",
        version=VERSION,
        last_time=await store.log.last_time(),
        active_model=await store.models.active(),
        settings={key: value for key, value in settings.items() if key != SALT},
        rows=counts,
    )
    document = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    write_whole(path / MANIFEST, document, private=True)
    return counts


def make_folder(folder: Path) -> None:
    """Make a new folder for an export; raise if there is something in it."""
    try:
        make_private_folder(folder)
        occupied = any(folder.iterdir())
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"{folder}: a file, not a folder. Name a new folder.") from None
    if occupied:
        raise StoreError(f"{folder}: not empty. Name a new folder for the export.")
