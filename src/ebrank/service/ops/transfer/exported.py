"""An export as a store: the same methods, reading from Parquet files."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ebrank.environment.paths import expanded
from ebrank.errors import DataError
from ebrank.service.ops.transfer import tables
from ebrank.service.store.records import (
    Deletion,
    Minute,
    ModelRecord,
    Operation,
    QueryState,
    RankingEntry,
)
from ebrank.service.store.rows import Count, ItemRow, counts_of, snapshot_of, state_of
from ebrank.service.store.tables import padded
from ebrank.typing import Features


class Exported:
    """A folder that `export` wrote: a store that is only read.

    Raises:
        DataError: if it is not an export, is not complete, or is of a newer version.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = expanded(folder)
        self.manifest = _manifest(self.folder)
        files = {name: self._open(name) for name in tables.TABLES}
        self.items = ExportedItems(files, self.folder)
        self.catalog = ExportedCatalog(files["catalog"])
        self.log = ExportedLog(files, self.folder, self.manifest)
        self.models = ExportedModels(files, self.manifest)
        self.meta = ExportedMeta(files, self.manifest)
        self.deletions = ExportedDeletions(files["deletions"])

    def _open(self, name: str) -> Any:  # noqa: ANN401 (pyarrow has no types)
        path = self.folder / f"{name}.parquet"
        arrow = tables.arrow()
        try:
            file = arrow.parquet.ParquetFile(path)
        except (OSError, arrow.ArrowInvalid) as problem:
            raise _damaged(path, str(problem)) from problem
        if not file.schema_arrow.equals(tables.schema(name)):
            raise _damaged(path, "its columns are not those of an export")
        if file.metadata.num_rows != self.manifest["rows"].get(name):
            raise _damaged(path, f"{file.metadata.num_rows} rows, {tables.MANIFEST} says otherwise")
        return file


class ExportedItems:
    """Queries and their items."""

    def __init__(self, files: Mapping[str, Any], folder: Path) -> None:
        self._folder = folder
        self._items = _Groups(files["items"], folder / "items.parquet")
        self._evidence = _Groups(files["evidence"], folder / "evidence.parquet")
        self._snapshot = _Groups(files["snapshot"], folder / "snapshot.parquet")

    async def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were added."""
        return list(self._items.places)

    async def load(self, query: str) -> QueryState | None:
        """Return a query's state by the counters."""
        rows = self._items.rows(query)
        if not rows:
            return None
        items = [
            ItemRow(row["item"], row["entered"], row["active"], row["first_shown"]) for row in rows
        ]
        counts = self._counts(self._evidence, query, [item.id for item in items])
        try:
            features = padded([row["features"] for row in rows])
            return state_of(query, items, features, counts, version=1)
        except ValueError as problem:
            raise _damaged(self._items.path, str(problem)) from problem

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state by what was rolled up."""
        state = await self.load(query)
        if state is None:
            return None
        return snapshot_of(state, self._counts(self._snapshot, query, state.ids))

    def _counts(self, table: _Groups, query: str, ids: Sequence[str]) -> list[Count]:
        places = {name: place for place, name in enumerate(ids)}
        rows = table.rows(query)
        for row in rows:
            if row["item"] not in places:
                raise _damaged(table.path, f"query {query!r} has a count of something unknown")
        numbers = ("outcome", "slot", "count", "epoch")
        found = [(places[row["item"]], *(row[name] for name in numbers)) for row in rows]
        try:
            counts_of(found, query, ids)
            return found
        except ValueError as problem:
            raise _damaged(table.path, f"query {query!r}: {problem}") from problem


class ExportedCatalog:
    """Features that queries share."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401 (pyarrow has no types)
        self._file = file

    async def version(self) -> int:
        """Return 1: an export does not change."""
        return 1

    async def read(self, names: Sequence[str], since: int = 0) -> dict[str, Features]:
        """Return the rows of some items, which takes a look at all of them."""
        wanted = set(names) if since < await self.version() else set()
        return {name: row async for name, row in self.entries() if name in wanted}

    async def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield all items with their rows."""
        for row in _rows(self._file):
            yield row["item"], np.array(row["features"], np.float32)


class ExportedLog:
    """Rankings and events."""

    def __init__(self, files: Mapping[str, Any], folder: Path, manifest: Mapping[str, Any]) -> None:
        self._files = files
        self._folder = folder
        self._manifest = manifest

    async def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list, which takes a look at all of them."""
        for _, entry in map(tables.ranking_of, _rows(self._files["rankings"])):
            if isinstance(entry, RankingEntry) and entry.id == ranking_id:
                return entry
        return None

    async def entries(self) -> AsyncIterator[Operation]:
        """Yield the log in order."""
        rankings = map(tables.ranking_of, _rows(self._files["rankings"]))
        events = map(tables.event_of, _rows(self._files["events"]))
        merged: Iterator[tuple[int, Operation]]
        merged = heapq.merge(rankings, events, key=lambda entry: entry[0])
        for expected, (position, entry) in enumerate(merged):
            if position != expected:
                raise _damaged(self._folder, f"entry {expected} of the log is missing")
            if expected % tables.ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)  # a turn for others, such as Ctrl-C
            yield entry

    async def length(self) -> int:
        """Return how many entries the log holds."""
        return int(self._manifest["rows"]["rankings"] + self._manifest["rows"]["events"])

    async def last_time(self) -> float:
        """Return the time of the latest write."""
        return float(self._manifest["last_time"])


class ExportedModels:
    """The versions of the prior."""

    def __init__(self, files: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
        self._file = files["models"]
        self._manifest = manifest

    async def all(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        return [
            ModelRecord(
                **{name: row[name] for name in row if name not in ("document", "features")},
                features=tuple(row["features"]),
            )
            for row in _rows(self._file)
        ]

    async def document(self, version: int) -> bytes | None:
        """Return the file of a version."""
        found = (row["document"] for row in _rows(self._file) if row["version"] == version)
        return next(found, None)

    async def active(self) -> int:
        """Return the active version."""
        return int(self._manifest["active_model"])


class ExportedDeletions:
    """What was deleted."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401 (pyarrow has no types)
        self._file = file

    async def all(self) -> list[Deletion]:
        """Return the proofs of all deletions, oldest first."""
        return [Deletion(**row) for row in _rows(self._file)]


class ExportedMeta:
    """Settings that belong to the data, and sums of minutes."""

    def __init__(self, files: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
        self._file = files["minutes"]
        self._manifest = manifest

    async def get(self, key: str) -> str | None:
        """Return a setting."""
        return (await self.all()).get(key)

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        return dict(self._manifest["settings"])

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        return [
            Minute(start, {row["name"]: row["value"] for row in rows})
            for start, rows in itertools.groupby(_rows(self._file), lambda row: float(row["start"]))
            if start >= since
        ]


def _rows(file: Any) -> Iterator[tables.Row]:  # noqa: ANN401 (pyarrow has no types)
    for batch in file.iter_batches(batch_size=tables.ROWS_AT_ONCE):
        yield from batch.to_pylist()


class _Groups:
    """Rows of a table by query; the last group of rows that was read stays in memory."""

    def __init__(self, file: Any, path: Path) -> None:  # noqa: ANN401
        self.path = path
        self._file = file
        self._group = -1
        self._rows: list[tables.Row] = []
        self._ends = list(
            itertools.accumulate(
                file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)
            )
        )
        self.places: dict[str, tuple[int, int]] = {}
        begin = 0
        names = (
            name.as_py()
            for batch in file.iter_batches(columns=["query"])
            for name in batch.column(0)
        )
        for query, rows in itertools.groupby(names):
            end = begin + sum(1 for _ in rows)
            if query in self.places:
                raise _damaged(path, f"query {query!r} stands at two places")
            self.places[query] = (begin, end)
            begin = end

    def rows(self, query: str) -> list[tables.Row]:
        """Return the rows of a query; none if it is unknown."""
        begin, end = self.places.get(query, (0, 0))
        found: list[tables.Row] = []
        start = 0
        for number, stop in enumerate(self._ends):
            if begin < stop and end > start:
                found += self._read(number)[max(begin - start, 0) : end - start]
            start = stop
        return found

    def _read(self, number: int) -> list[tables.Row]:
        if number != self._group:
            self._group, self._rows = number, self._file.read_row_group(number).to_pylist()
        return self._rows


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / tables.MANIFEST
    try:
        document = json.loads(path.read_bytes())
    except OSError as problem:
        raise DataError(
            f"no complete export ({problem.strerror})",
            path=path,
            remedy="Name a folder that `ebrank export` wrote to its end.",
        ) from None
    except ValueError as problem:
        raise _damaged(path, str(problem)) from problem
    if not isinstance(document, dict) or document.get("format") != tables.FORMAT:
        raise _damaged(path, "not the manifest of an export")
    if document.get("version") != tables.VERSION:
        raise DataError(
            f"an export of version {document.get('version')}, this ebrank knows {tables.VERSION}",
            path=path,
            remedy="Upgrade ebrank.",
        )
    expected = {"last_time": float, "active_model": int, "settings": dict, "rows": dict}
    for name, kind in expected.items():
        if not isinstance(document.get(name), kind):
            raise _damaged(path, f"{name} is missing or of the wrong type")
    return document


def _damaged(path: Path, why: str) -> DataError:
    return DataError(f"a damaged export: {why}", path=path, remedy="Export again.")
