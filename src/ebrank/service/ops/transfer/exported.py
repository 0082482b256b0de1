"""An export as a store: the same methods, reading from Parquet files."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ebrank.environment.paths import expanded
from ebrank.errors import DataError
from ebrank.service.ops.transfer import exporting
from ebrank.service.store import records
from ebrank.service.store.base import Store
from ebrank.service.store.deletions import StoredDeletions
from ebrank.service.store.driver import StoreGroup
from ebrank.service.store.items import StoredCatalog, StoredItems
from ebrank.service.store.log import StoredLog
from ebrank.service.store.meta import StoredMeta, StoredModels
from ebrank.service.store.records import ArmSums, Minute, ModelRecord, Operation, QueryState
from ebrank.service.store.rows import Count, ItemRow, counts_of, snapshot_of, state_of
from ebrank.service.store.tables import padded
from ebrank.typing import Features

ROWS_AT_ONCE = 1000
"""Rows that are read together."""


class Exported(Store):
    """A folder that `export` wrote: a store that is only read.

    Raises:
        DataError: if it is not an export, is not complete, or is of a newer version.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = expanded(folder)
        self.manifest = _manifest(self.folder)
        self.files = {name: self._open(name) for name in exporting.TABLES}
        self.items = ExportedItems(self)
        self.catalog = ExportedCatalog(self)
        self.log = ExportedLog(self)
        self.models = ExportedModels(self)
        self.meta = ExportedMeta(self)
        self.deletions = ExportedDeletions(self)

    def _open(self, name: str) -> Any:  # noqa: ANN401 (pyarrow has no types)
        path = self.folder / f"{name}.parquet"
        with _reading(path):
            file = exporting.arrow().parquet.ParquetFile(path)
        if not file.schema_arrow.equals(exporting.schema(name)):
            raise _damaged(path, "its columns are not those of an export")
        if file.metadata.num_rows != self.manifest.rows.get(name):
            raise _damaged(
                path, f"{file.metadata.num_rows} rows, {exporting.MANIFEST} says otherwise"
            )
        return file

    def rows(self, table: str) -> Iterator[exporting.Row]:
        """Yield the rows of a table."""
        with _reading(self.folder / f"{table}.parquet"):
            for batch in self.files[table].iter_batches(batch_size=ROWS_AT_ONCE):
                yield from batch.to_pylist()


class _ExportedPart(StoreGroup):
    """A group of a store's methods, of which those that read have a file instead of a database."""

    def __init__(self, export: Exported) -> None:
        self._export = export
        self._manifest = export.manifest


class ExportedItems(_ExportedPart, StoredItems):
    """Queries and their items."""

    def __init__(self, export: Exported) -> None:
        super().__init__(export)
        self._items, self._evidence, self._snapshot = (
            _Groups(export.files[name], export.folder / f"{name}.parquet")
            for name in ("items", "evidence", "snapshot")
        )

    async def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were added."""
        return list(self._items.places)

    async def load(self, query: str) -> QueryState | None:
        """Return a query's state by the counters."""
        rows = self._items.rows(query)
        if not rows:
            return None
        items = [ItemRow(*(row[name] for name in exporting.OF_ITEM)) for row in rows]
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
        counts: list[Count] = []
        for row in table.rows(query):
            if row["item"] not in places:
                raise _damaged(table.path, f"query {query!r} has a count of something unknown")
            outcome, slot, count, epoch = (row[name] for name in exporting.OF_COUNT)
            counts.append((places[row["item"]], outcome, slot, count, epoch))
        try:
            counts_of(counts, query, ids)
        except ValueError as problem:
            raise _damaged(table.path, f"query {query!r}: {problem}") from problem
        return counts


class ExportedCatalog(_ExportedPart, StoredCatalog):
    """Features that queries share."""

    async def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield all items with their rows."""
        for row in self._export.rows("catalog"):
            yield row["item"], np.array(row["features"], np.float32)


class ExportedLog(_ExportedPart, StoredLog):
    """Rankings and events."""

    def _entries(self, table: str, kind: type[Operation]) -> Iterator[tuple[int, Operation]]:
        for row in self._export.rows(table):
            yield row["position"], exporting.record_of(kind, row)

    async def entries(self) -> AsyncIterator[Operation]:
        """Yield the log in order."""
        parts = (
            self._entries("rankings", records.RankingEntry),
            self._entries("events", records.EventEntry),
        )
        for expected, (position, entry) in enumerate(heapq.merge(*parts, key=itemgetter(0))):
            if position != expected:
                raise _damaged(self._export.folder, f"entry {expected} of the log is missing")
            if expected % ROWS_AT_ONCE == 0:
                await asyncio.sleep(0)  # a turn for others, such as Ctrl-C
            yield entry

    async def length(self) -> int:
        """Return how many entries the log holds."""
        return self._manifest.rows["rankings"] + self._manifest.rows["events"]

    async def last_time(self) -> float:
        """Return the time of the latest write."""
        return self._manifest.last_time


class ExportedModels(_ExportedPart, StoredModels):
    """The versions of the prior."""

    async def all(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        return [exporting.record_of(ModelRecord, row) for row in self._export.rows("models")]

    async def document(self, version: int) -> bytes | None:
        """Return the file of a version."""
        return self._row(version).get("document")

    async def arms(self, version: int) -> dict[str, str]:
        """Return the files of priors that arms have for themselves, by policy."""
        arms: dict[str, str] = json.loads(self._row(version).get("arms") or "{}")
        return arms

    def _row(self, version: int) -> exporting.Row:
        rows = self._export.rows("models")
        return next((row for row in rows if row["version"] == version), {})

    async def active(self) -> int:
        """Return the active version."""
        return self._manifest.active_model


class ExportedDeletions(_ExportedPart, StoredDeletions):
    """What was deleted."""

    async def all(self) -> list[records.Deletion]:
        """Return the proofs of all deletions, oldest first."""
        return [
            exporting.record_of(records.Deletion, row) for row in self._export.rows("deletions")
        ]


class ExportedMeta(_ExportedPart, StoredMeta):
    """Settings that belong to the data, and sums of minutes."""

    async def get(self, key: str) -> str | None:
        """Return a setting."""
        return (await self.all()).get(key)

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        return dict(self._manifest.settings)

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        by_start = itertools.groupby(self._export.rows("minutes"), itemgetter("start"))
        return [
            Minute(float(start), {row["name"]: row["value"] for row in rows})
            for start, rows in by_start
            if start >= since
        ]

    async def arm_sums(self, experiment: str | None = None) -> list[ArmSums]:
        """Return the sums of an experiment, or of all, in order."""
        every = [ArmSums(**row) for row in self._export.rows("arm_sums")]
        return [sums for sums in every if experiment in (None, sums.experiment)]


class _Groups:
    """Rows of a table by query; the last groups of rows that were read stay in memory."""

    def __init__(self, file: Any, path: Path) -> None:  # noqa: ANN401
        self.path = path
        self._read = lru_cache(1)(lambda first, end: file.read_row_groups(range(first, end)))
        groups = (file.metadata.row_group(number) for number in range(file.num_row_groups))
        self._bounds = list(itertools.accumulate((group.num_rows for group in groups), initial=0))
        self.places: dict[str, tuple[int, int]] = {}
        begin = 0
        names = (
            name.as_py()
            for batch in file.iter_batches(columns=["query"])
            for name in batch.column(0)
        )
        with _reading(path):
            for query, rows in itertools.groupby(names):
                end = begin + sum(1 for _ in rows)
                if query in self.places:
                    raise _damaged(path, f"query {query!r} stands at two places")
                self.places[query] = (begin, end)
                begin = end

    def rows(self, query: str) -> list[exporting.Row]:
        """Return the rows of a query; none if it is unknown."""
        if query not in self.places:
            return []
        begin, end = self.places[query]
        first = bisect_right(self._bounds, begin) - 1
        with _reading(self.path):
            groups = self._read(first, bisect_left(self._bounds, end))
        rows: list[exporting.Row] = groups.slice(
            begin - self._bounds[first], end - begin
        ).to_pylist()
        return rows


def _manifest(folder: Path) -> exporting.Manifest:
    path = folder / exporting.MANIFEST
    try:
        content = path.read_bytes()
        version = msgspec.json.decode(content, type=exporting.Kind).version
        if version == exporting.VERSION:
            return msgspec.json.decode(content, type=exporting.Manifest)
    except OSError as problem:
        raise DataError(
            f"no complete export ({problem.strerror})",
            path=path,
            remedy="Name a folder that `ebrank export` wrote to its end.",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise _damaged(path, str(problem)) from problem
    older = "Import it with the ebrank that wrote it, then run `ebrank store migrate` on the store."
    raise DataError(
        f"an export of version {version}, this ebrank knows {exporting.VERSION}",
        path=path,
        remedy="Upgrade ebrank." if version > exporting.VERSION else older,
    )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say which file it is if the code inside cannot read it."""
    try:
        yield
    except (OSError, exporting.arrow().ArrowInvalid) as problem:
        raise _damaged(path, str(problem)) from problem


def _damaged(path: Path, why: str) -> DataError:
    return DataError(f"a damaged export: {why}", path=path, remedy="Export again.")
