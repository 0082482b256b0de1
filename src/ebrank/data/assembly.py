"""Assembles parsed chunks: the queries of all files and one dense table of features.

Several threads parse chunks and one assembles them, in the order of the text. So the result, and
the error if a line is bad, are the same for any number of threads and any chunk size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ebrank.data.cache import Parsed, ParsedFile
from ebrank.data.feature_table import FeatureTable
from ebrank.data.parser import Chunk, parse
from ebrank.data.text_reader import CHUNK, TextReader
from ebrank.errors import DataError
from ebrank.kernels.arrays import read_only
from ebrank.kernels.threads import available_threads
from ebrank.typing import Ints, Labels

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes read and the total bytes."""

MAX_THREADS = 8  # more would wait for the thread that assembles


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
        file = self._files[-1]
        first = self._add_queries(chunk)
        if chunk.bad_line is not None:
            line, problem, remedy = chunk.bad_line
            raise self._error(problem, line, remedy)
        file.queries += len(chunk.query_ids) - first
        self._query_rows.append(chunk.query_rows[first:] + self.table.rows)
        self._labels.append(chunk.labels.copy())  # the original has room for many more
        file.rows += len(chunk.labels)
        file.features = max(file.features, int(chunk.ids.max(initial=0)))
        for label in np.flatnonzero(chunk.label_lines):
            file.label_lines[label] = file.label_lines[label] or int(
                chunk.label_lines[label] + self._lines
            )
        self._lines += chunk.lines
        try:
            self.table.append(chunk.row_ends, chunk.ids, chunk.values)
        except DataError as error:
            raise self._error(error.problem, 0, error.remedy) from None

    def end(self, source: TextReader) -> None:
        """Finish a file; raise if it is incomplete or has no rows."""
        if source.problem:
            raise self._error(source.problem, 1, "Download or copy it again.")
        if self._files[-1].rows == 0:
            problem = "file has no rows" if source.size else "file is empty"
            raise self._error(problem, 0 if self._lines else 1, "Rows look like 2 qid:10 1:0.5.")
        self._files[-1].content_hash = source.content_hash

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
        runs = zip(chunk.query_ids[first:], chunk.query_lines[first:], strict=True)
        for query, line in runs:
            if line >= last:
                break
            if query in self._places:
                raise self._repeated(query, int(line))
            self._places[query] = (len(self._files) - 1, self._lines + int(line))
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
