"""`ebrank export`: a store as a folder of Parquet files.

The manifest is written last, so a folder without one is an export that did not finish.

An export holds hashes of users' names but not the store's salt, without which nobody can tell whose
they are, not even by trying all names. Only its owner can read it.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ebrank.environment.files import make_private_file, make_private_folder, write_whole
from ebrank.service.ops.replay import listed, watched
from ebrank.service.ops.transfer import tables
from ebrank.service.store.base import SALT, Progress, StoreError, StoreView
from ebrank.service.store.records import RankingEntry

ROWS_AT_ONCE = 10_000


class _ParquetFile:
    """A Parquet file that is written a group of rows at a time."""

    def __init__(self, folder: Path, name: str) -> None:
        self._arrow = tables.arrow()
        self._schema = tables.schema(name)
        path = folder / f"{name}.parquet"
        make_private_file(path)
        self._file = self._arrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[tables.Row] = []
        self.count = 0

    def add(self, *rows: tables.Row) -> None:
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
    store: StoreView, folder: str | os.PathLike[str], progress: Progress | None = None
) -> dict[str, int]:
    """Write a store to a new folder; return the rows of each table.

    Raises:
        StoreError: if the folder exists and is not empty.
    """
    path = Path(folder)
    make_folder(path)
    with ExitStack() as stack:
        out = {name: _ParquetFile(path, name) for name in tables.TABLES}
        for table in out.values():
            stack.callback(table.close)
        for query in await store.items.queries():
            current = listed(query, await store.items.load(query))
            snapshot = listed(query, await store.items.snapshot(query))
            out["items"].add(*tables.rows_of_items(current))
            out["evidence"].add(*tables.rows_of_counts(current))
            out["snapshot"].add(*tables.rows_of_counts(snapshot))
        async for item, features in store.catalog.entries():
            out["catalog"].add({"item": item, "features": features})
        position = 0
        async for entry in watched(store, progress):
            name = "rankings" if isinstance(entry, RankingEntry) else "events"
            out[name].add({"position": position} | tables.row_of(entry))
            position += 1
        for minute in await store.meta.minutes(0.0):
            for name, value in minute.values.items():
                out["minutes"].add({"start": minute.start, "name": name, "value": value})
        for record in await store.models.all():
            document = await store.models.document(record.version)
            arms = await store.models.arms(record.version)
            files = {"document": document, "arms": json.dumps(arms) if arms else None}
            out["models"].add(tables.row_of(record) | files)
        out["trials"].add(*(trial._asdict() for trial in await store.meta.trials()))
        for deletion in await store.deletions.all():
            out["deletions"].add(tables.row_of(deletion))
    counts = {name: table.count for name, table in out.items()}
    settings = await store.meta.all()
    manifest = tables.Manifest(
        last_time=await store.log.last_time(),
        active_model=await store.models.active(),
        settings={key: value for key, value in settings.items() if key != SALT},
        rows=counts,
    )
    document = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    write_whole(path / tables.MANIFEST, document, private=True)
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
