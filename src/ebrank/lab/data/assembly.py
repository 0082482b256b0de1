"""Reads files, plain or gzip, and assembles their parsed chunks: queries, and one dense table.

Several threads parse chunks and one assembles them, in the order of the text. So the result, and
the error if a line is bad, are the same for any number of threads and any chunk size.

The height and width of the table are known only at the end. So it grows: in height with little
copying, since the C library moves no large array, and in width, which is rare, into a new one.
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ebrank.errors import DataError
from ebrank.kernels.arrays import read_only
from ebrank.kernels.compiled import kernel
from ebrank.kernels.threads import available_threads
from ebrank.lab.data.cache import Parsed, ParsedFile
from ebrank.lab.data.parser import Chunk, SparseRows, parse
from ebrank.typing import Features, Ints, Labels, SmallInts

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes read and the total bytes."""

CHUNK = 4 << 20
"""Bytes of text parsed at a time: enough to hide the overhead, few enough to keep in memory."""
MAX_LINE = 64 << 20
GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
MAX_THREADS = 8  # more would wait for the thread that assembles
ITEM = np.dtype(np.float32).itemsize
SPARSE_BYTES = 1 << 30
SPARSE_SHARE = 1000
"""A table over `SPARSE_BYTES` must have a value in at least one of this many cells."""


def parse_files(
    files: Sequence[Path],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    chunk_size: int = CHUNK,
) -> Parsed:
    """Return the files' rows in order.

    Raises:
        DataError: at the first bad line; or if a file cannot be read.
    """
    assembly = Assembly()
    threads = min(threads or available_threads(), MAX_THREADS)
    total = sum(path.stat().st_size for path in files if path.is_file())
    done = 0
    for path in files:
        with opened(path) as file:
            assembly.begin(path, file)
            for chunk in in_order(assembly.chunks(file, chunk_size), threads):
                assembly.add(chunk)
                if progress is not None and file.seekable():
                    progress(done + file.tell(), total)
            assembly.end()
            done += file.tell() if file.seekable() else 0
    return assembly.finish()


def opened(path: Path) -> io.BufferedReader:
    """Return a file to read, or raise `DataError`."""
    try:
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> DataError:
    """Return the error for a file that the system refuses to read."""
    return DataError(f"cannot be read: {error.strerror or error}", path=path)


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

    def __init__(self) -> None:
        self._table = np.zeros((0, 0), np.float32)
        self._rows = self._entries = 0
        self._files: list[ParsedFile] = []
        self._labels: list[Labels] = []
        self._query_rows: list[Ints] = []
        self._places: dict[str, tuple[int, int]] = {}  # where each query begins: file and line
        self._current = ""  # the query that a further row would continue
        self._lines = 0
        self._problem = ""  # why a file's text broke off

    def begin(self, path: Path, file: io.BufferedReader) -> None:
        """Start a file."""
        status = os.fstat(file.fileno())
        self._files.append(ParsedFile(str(path), status.st_size, status.st_mtime_ns))
        self._lines = 0
        self._current = self._problem = ""

    def chunks(self, file: io.BufferedReader, size: int) -> Iterator[bytes]:
        """Yield runs of whole lines of about `size` bytes; only the last may lack its end.

        If the text breaks off, `end` raises, so that a bad line before that is named first.
        """
        zipped = file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
        source = gzip.GzipFile(fileobj=file) if zipped else file
        text = bytearray()
        try:
            text += source.read(len(UTF8_BOM)).removeprefix(UTF8_BOM)
            while piece := source.read1(size):  # `read` would lose what comes before damage
                text += piece
                cut = text.rfind(b"\n") + 1 if len(text) >= size else 0
                if cut:
                    yield bytes(text[:cut])
                    del text[:cut]
                elif len(text) > MAX_LINE:
                    self._problem = f"line is longer than {MAX_LINE:,} bytes"
                    return
        except EOFError:
            self._problem = "gzip data is truncated"
        except (gzip.BadGzipFile, zlib.error) as error:
            self._problem = f"gzip data is damaged ({error})"
        except OSError as error:
            raise unreadable(Path(self._files[-1].path), error) from None
        if self._problem:
            del text[text.rfind(b"\n") + 1 :]
        if text:
            yield bytes(text)

    def add(self, chunk: Chunk) -> None:
        """Add the rows of the next chunk; raise at its first bad line."""
        file, columns = self._files[-1], chunk.columns
        first = self._add_queries(chunk)
        if chunk.bad_line is not None:
            line, problem, remedy = chunk.bad_line
            raise self._error(problem, line, remedy)
        file.queries += len(chunk.query_ids) - first
        self._query_rows.append(columns.runs[first:, 0] + self._rows)
        self._labels.append(columns.labels.copy())  # the original has room for many more
        file.rows += len(columns.labels)
        file.features = max(file.features, int(columns.ids.max(initial=0)))
        for label, line in enumerate(columns.label_lines.tolist()):
            if line and not file.label_lines[label]:
                file.label_lines[label] = line + self._lines
        self._lines += chunk.lines
        self._add_features(columns)

    def end(self) -> None:
        """Finish a file; raise if it is incomplete or has no rows."""
        if self._problem:
            raise self._error(self._problem, 1, "Download or copy it again.")
        if self._files[-1].rows == 0:
            problem = "file has no rows" if self._files[-1].size else "file is empty"
            raise self._error(problem, 0 if self._lines else 1, "Rows look like 2 qid:10 1:0.5.")

    def finish(self) -> Parsed:
        """Return all of it."""
        self._table.resize((self._rows, self._table.shape[1]), refcheck=False)
        return Parsed(
            features=read_only(self._table),
            labels=read_only(np.concatenate(self._labels)),
            query_pointers=read_only(np.append(np.concatenate(self._query_rows), self._rows)),
            query_ids=read_only(np.array(list(self._places))),
            files=tuple(self._files),
        )

    def _add_features(self, columns: SparseRows) -> None:
        """Add the features of some rows; raise if the table gets too sparse for its space."""
        first, self._rows = self._rows, self._rows + len(columns.row_ends)
        self._entries += len(columns.ids)
        room, before = self._table.shape
        width = max(before, int(columns.ids.max(initial=0)))
        cells = self._rows * width
        if cells * ITEM > SPARSE_BYTES and cells > SPARSE_SHARE * self._entries:
            raise self._error(
                f"{self._rows:,} rows of {width:,} features have too few values for a dense "
                f"table: {self._entries:,}",
                0,
                "Renumber the features from 1 without gaps.",
            )
        if width > before:
            wider = np.zeros((room, width), np.float32)
            wider[:, :before] = self._table
            self._table = wider
        if self._rows > room:
            self._table.resize((self._rows * 5 // 4, width), refcheck=False)
        spread(columns.row_ends, columns.ids, columns.values, self._table[first : self._rows])

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


@kernel
def spread(row_ends: Ints, ids: SmallInts, values: Features, block: Features) -> None:
    """Write the entries of rows into a block of zeros; `row_ends` says where those of each end."""
    entry = 0
    for row in range(len(row_ends)):
        while entry < row_ends[row]:
            block[row, ids[entry] - 1] = values[entry]
            entry += 1
