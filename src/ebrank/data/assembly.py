"""Assembles parsed chunks: the queries of all files and one dense table of features.

Several threads parse chunks and one assembles them, in the order of the text. So the result, and
the error if a line is bad, are the same for any number of threads and any chunk size.

The width of the table is known only at the end. Blocks are written as wide as the features seen so
far; if a later one is wider, zeros widen the earlier ones when the table is finished. A table in a
file may exceed memory; the file holds nothing but the numbers.

>>> table = FeatureTable(None)
>>> table.append(np.array([2, 3]), np.array([1, 2, 1], np.int32), np.array([5, 6, 7], np.float32))
>>> table.append(np.array([1]), np.array([3], np.int32), np.array([8], np.float32))
>>> table.finish()
array([[5., 6., 0.],
       [7., 0., 0.],
       [0., 0., 8.]], dtype=float32)
"""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np

from ebrank.data.cache import Parsed, ParsedFile
from ebrank.data.parser import Chunk, parse
from ebrank.data.text_reader import CHUNK, TextReader
from ebrank.errors import DataError
from ebrank.kernels.arrays import read_only
from ebrank.kernels.compiled import kernel
from ebrank.kernels.threads import available_threads
from ebrank.typing import Features, Ints, Labels, SmallInts

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes read and the total bytes."""

MAX_THREADS = 8  # more would wait for the thread that assembles
BLOCK = 4 << 20  # bytes of the table made at a time
ITEM = np.dtype(np.float32).itemsize
SPARSE_BYTES = 1 << 30
SPARSE_SHARE = 1000
"""A table over `SPARSE_BYTES` must have a value in at least one of this many cells."""


def parse_files(
    files: Sequence[Path],
    table_path: Path | None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    chunk_size: int = CHUNK,
) -> Parsed:
    """Return the files' rows in order, with the features in `table_path` or in memory.

    Raises:
        DataError: at the first bad line; or if a file cannot be read.
        OSError: if the table cannot be written.
    """
    assembly = Assembly(FeatureTable(table_path))
    threads = min(threads or available_threads(), MAX_THREADS)
    total = sum(path.stat().st_size for path in files if path.is_file())
    done = 0
    try:
        for path in files:
            with TextReader(path) as source:
                assembly.begin(source)
                for chunk in in_order(source.chunks(chunk_size), threads):
                    assembly.add(chunk)
                    if progress is not None:
                        progress(done + source.consumed, total)
                assembly.end(source)
            done += source.consumed
        return assembly.finish()
    finally:
        assembly.table.close()


def in_order(texts: Iterator[bytes], threads: int) -> Iterator[Chunk]:
    """Yield the parsed texts in order, while a few more are being parsed."""
    if threads == 1:
        yield from map(parse, texts)
        return
    pending: deque[Future[Chunk]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for text in texts:
            pending.append(pool.submit(parse, text))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


class Assembly:
    """The growing whole."""

    def __init__(self, table: FeatureTable) -> None:
        self.table = table
        self._files: list[ParsedFile] = []
        self._labels: list[Labels] = []
        self._query_rows: list[Ints] = []
        self._places: dict[str, tuple[int, int]] = {}  # where each query begins: file and line
        self._current = ""  # the query that a further row would continue
        self._lines = 0

    def begin(self, source: TextReader) -> None:
        """Start a file."""
        self._files.append(ParsedFile(str(source.path), source.size, source.mtime_ns))
        self._lines = 0
        self._current = ""

    def add(self, chunk: Chunk) -> None:
        """Add the rows of the next chunk; raise at its first bad line."""
        file, columns = self._files[-1], chunk.columns
        first = self._add_queries(chunk)
        if chunk.bad_line is not None:
            line, problem, remedy = chunk.bad_line
            raise self._error(problem, line, remedy)
        file.queries += len(chunk.query_ids) - first
        self._query_rows.append(columns.runs[first:, 0] + self.table.rows)
        self._labels.append(columns.labels.copy())  # the original has room for many more
        file.rows += len(columns.labels)
        file.features = max(file.features, int(columns.ids.max(initial=0)))
        for label, line in enumerate(columns.label_lines.tolist()):
            if line and not file.label_lines[label]:
                file.label_lines[label] = line + self._lines
        self._lines += chunk.lines
        try:
            self.table.append(columns.row_ends, columns.ids, columns.values)
        except DataError as error:
            raise self._error(error.problem, 0, error.remedy) from None

    def end(self, source: TextReader) -> None:
        """Finish a file; raise if it is incomplete or has no rows."""
        if source.problem:
            raise self._error(source.problem, 1, "Download or copy it again.")
        if self._files[-1].rows == 0:
            problem = "file has no rows" if source.size else "file is empty"
            raise self._error(problem, 0 if self._lines else 1, "Rows look like 2 qid:10 1:0.5.")

    def finish(self) -> Parsed:
        """Return all of it."""
        return Parsed(
            features=self.table.finish(),
            labels=read_only(np.concatenate(self._labels)),
            query_pointers=read_only(np.append(np.concatenate(self._query_rows), self.table.rows)),
            query_ids=read_only(np.array(list(self._places))),
            files=tuple(self._files),
        )

    def _add_queries(self, chunk: Chunk) -> int:
        """Record where the chunk's queries begin; return the first new one (0 or 1)."""
        last = chunk.bad_line.line if chunk.bad_line is not None else chunk.lines + 1
        first = int(bool(chunk.query_ids) and chunk.query_ids[0] == self._current)
        lines = chunk.columns.runs[first:, 1].tolist()
        for query, line in zip(chunk.query_ids[first:], lines, strict=True):
            if line >= last:
                break
            if query in self._places:
                raise self._repeated(query, line)
            self._places[query] = (len(self._files) - 1, self._lines + line)
        if chunk.query_ids:
            self._current = chunk.query_ids[-1]
        return first

    def _repeated(self, query: str, line: int) -> DataError:
        file, first_line = self._places[query]
        if file == len(self._files) - 1:
            problem = (
                f"query {query!r} reappears after other queries; it began at line {first_line}"
            )
            return self._error(problem, line, "Keep the rows of a query together.")
        problem = f"query {query!r} is already in {self._files[file].path}:{first_line}"
        return self._error(problem, line, "A query belongs to one split only.")

    def _error(self, problem: str, line: int, remedy: str) -> DataError:
        path = self._files[-1].path
        return DataError(problem, path=path, line=self._lines + line, remedy=remedy)


class FeatureTable:
    """Rows of float32 features, appended sparse and stored dense.

    Args:
        path: the file to write, a new one, or None to keep the table in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._blocks: list[tuple[int, int]] = []  # rows and width of each that was appended
        self._entries = 0
        self.rows = 0
        self.width = 0
        self._file: BinaryIO = io.BytesIO() if path is None else path.open("w+b")

    def append(self, row_ends: Ints, ids: SmallInts, values: Features) -> None:
        """Add rows; `row_ends` says where each row's entries end in `ids` and `values`."""
        if len(row_ends) == 0:
            return
        self.rows += len(row_ends)
        self.width = max(self.width, int(ids.max()))
        self._entries += len(ids)
        self._check_size()
        for start, stop in _stretches(len(row_ends), self.width):
            block = np.zeros((stop - start, self.width), np.float32)
            spread(row_ends, ids, values, start, block)
            self._file.write(block.data)
        self._blocks.append((len(row_ends), self.width))

    def finish(self) -> Features:
        """Return the whole table, read-only; if it is in a file, memory-mapped."""
        if any(width < self.width for _, width in self._blocks):
            self._widen()
        shape = (self.rows, self.width)
        if isinstance(self._file, io.BytesIO):
            table = np.frombuffer(self._file.getbuffer(), np.float32)
        else:
            self.close()
            table = np.asarray(np.memmap(self._file.name, np.float32, mode="r"))
        return read_only(table.reshape(shape))

    def close(self) -> None:
        """Give up the file, if there is one."""
        if not isinstance(self._file, io.BytesIO):
            self._file.close()

    def _widen(self) -> None:
        """Widen all rows to the final width, in place: from the last block to the first.

        A row only moves towards the end, so no row that is still to be read is overwritten.
        """
        source = sum(rows * width for rows, width in self._blocks) * ITEM
        target = self.rows * self.width * ITEM
        for rows, width in reversed(self._blocks):
            for start, stop in reversed(list(_stretches(rows, self.width))):
                source -= (stop - start) * width * ITEM
                target -= (stop - start) * self.width * ITEM
                self._file.seek(source)
                cells = self._file.read((stop - start) * width * ITEM)
                block = np.zeros((stop - start, self.width), np.float32)
                block[:, :width] = np.frombuffer(cells, np.float32).reshape(-1, width)
                self._file.seek(target)
                self._file.write(block.data)

    def _check_size(self) -> None:
        """Raise if the table is too sparse to be worth its space, or too large for memory."""
        cells = self.rows * self.width
        shape = f"{self.rows:,} rows of {self.width:,} features"
        if cells * ITEM > SPARSE_BYTES and cells > SPARSE_SHARE * self._entries:
            raise DataError(
                f"{shape} have too few values for a dense table: {self._entries:,}",
                remedy="Renumber the features from 1 without gaps.",
            )
        if self._path is None and cells * ITEM > _memory():
            raise DataError(
                f"{shape} do not fit in memory",
                remedy="Use the cache: set EBRANK_DATASET_CACHE to a folder with enough space.",
            )


@kernel
def spread(row_ends: Ints, ids: SmallInts, values: Features, first: int, block: Features) -> None:
    """Write the entries of the rows from `first` on into a block of zeros."""
    entry = row_ends[first - 1] if first > 0 else 0
    for row in range(len(block)):
        while entry < row_ends[first + row]:
            block[row, ids[entry] - 1] = values[entry]
            entry += 1


def _stretches(rows: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of stretches of rows of about `BLOCK` bytes each."""
    step = max(1, BLOCK // (width * ITEM))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def _memory() -> int:
    """Return the bytes of the machine's memory, or a petabyte if unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError):
        return 1 << 50
