"""The parser: LETOR text in, arrays out, stopping at the first bad line.

Files are plain or gzip, recognized by their first bytes. A regular expression says whether a line
is a row, and NumPy reads its numbers, each as `np.float32(float(token))`. Only for a line that is
no row do we look at its tokens one by one, to say what is wrong:

>>> row = parse_row(b"2 qid:7 1:0.5 3:1e-3 # a comment\\n")
>>> row.label, row.query, row.ids.tolist(), row.values.tolist()
(2, '7', [1, 3], [0.5, 0.0010000000474974513])
>>> parse_row(b"1 qid:8 1:x\\n")
Traceback (most recent call last):
ebrank.data.parser.BadLine: value 'x' of feature 1 is not a finite 32-bit number
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from ebrank.data.cache import Parsed, ParsedFile
from ebrank.data.interpretation import MAX_FEATURE, MAX_LABEL
from ebrank.errors import DataError
from ebrank.kernels.arrays import read_only
from ebrank.typing import Features, Ints

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes read and the total bytes."""

LABEL = rb"([0-9]{1,100})(?:\.0*)?"
QUERY = rb"qid:([^\x00-\x20\x7f#]{1,256})"
NUMBER = rb"[-+]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
ROW = re.compile(rb"[ \t]*%b[ \t]+%b((?:[ \t]++[0-9]++:%b)++)[ \t]*" % (LABEL, QUERY, NUMBER))
SHOWN = 40  # characters of a bad token that a message repeats
MAX_LINE = 64 << 20
GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"
LINES_PER_NOTE = 10_000  # of progress
ITEM = np.dtype(np.float32).itemsize
SPARSE_BYTES = 1 << 30
SPARSE_SHARE = 1000
"""A table over `SPARSE_BYTES` must have a value in at least one of this many cells."""


class BadLine(Exception):
    """What is wrong with a line, and what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem, self.remedy = problem, remedy


class Row(NamedTuple):
    """A row; the numbers of its features ascend."""

    label: int
    query: str
    ids: Ints
    values: Features


def parse_files(files: Sequence[Path], progress: Progress | None = None) -> Parsed:
    """Return the files' rows in order.

    Raises:
        DataError: at the first bad line; or if a file cannot be read.
    """
    parser = _Parser()
    total = sum(path.stat().st_size for path in files if path.is_file())
    done = 0
    for path in files:
        try:
            with path.open("rb") as file:
                for line, text in parser.lines(path, file):
                    parser.add(line, text)
                    if progress is not None and line % LINES_PER_NOTE == 0 and file.seekable():
                        progress(done + file.tell(), total)
        except OSError as problem:
            raise unreadable(path, problem) from None
        done += parser.files[-1].size
        if progress is not None:
            progress(done, total)
    return parser.finish()


class _Parser:
    """The growing whole: the queries of all files, and one dense table of features."""

    def __init__(self) -> None:
        self.files: list[ParsedFile] = []
        self._labels: list[int] = []
        self._starts: list[int] = []  # the first row of each query
        self._places: dict[str, tuple[int, int]] = {}  # where each query begins: file and line
        self._current = ""  # the query that a further row would continue
        self._table = np.zeros((0, 0), np.float32)
        self._entries = 0

    def lines(self, path: Path, file: BufferedReader) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of a file with their numbers; raise at its end if it is incomplete."""
        status = os.fstat(file.fileno())
        self.files.append(ParsedFile(str(path), status.st_size, status.st_mtime_ns))
        self._current, line = "", 0
        try:
            for text in _texts(file):
                line += 1
                if len(text) > MAX_LINE and not text.endswith(b"\n"):
                    raise self._broken(f"line is longer than {MAX_LINE:,} bytes", line)
                yield line, text
        except EOFError:
            raise self._broken("gzip data is truncated", line + 1) from None
        except (gzip.BadGzipFile, zlib.error) as damage:
            raise self._broken(f"gzip data is damaged ({damage})", line + 1) from None
        if self.files[-1].rows == 0:
            problem = "file has no rows" if status.st_size else "file is empty"
            raise self._error(problem, max(line, 1), "Rows look like 2 qid:10 1:0.5.")

    def add(self, line: int, text: bytes) -> None:
        """Add the row of a line, if it has one."""
        try:
            row = parse_row(text)
        except BadLine as bad:
            raise self._error(bad.problem, line, bad.remedy) from None
        if row is None:
            return
        file, number = self.files[-1], len(self._labels)
        if row.query != self._current:
            if row.query in self._places:
                raise self._repeated(row.query, line)
            self._places[row.query] = len(self.files) - 1, line
            self._starts.append(number)
            self._current = row.query
            file.queries += 1
        file.rows += 1
        file.features = max(file.features, int(row.ids[-1]))
        file.label_lines[row.label] = file.label_lines[row.label] or line
        self._labels.append(row.label)
        self._entries += len(row.ids)
        self._make_room(number + 1, int(row.ids[-1]), line)
        self._table[number, row.ids - 1] = row.values

    def finish(self) -> Parsed:
        """Return all of it."""
        rows, width = len(self._labels), self._table.shape[1]
        self._table.resize((rows, width), refcheck=False)
        return Parsed(
            features=read_only(self._table),
            labels=read_only(np.array(self._labels, np.int8)),
            query_pointers=read_only(np.array([*self._starts, rows], np.int64)),
            query_ids=read_only(np.array(list(self._places))),
            files=tuple(self.files),
        )

    def _make_room(self, rows: int, width: int, line: int) -> None:
        """Let the table grow; raise if it gets too sparse for its space."""
        room, before = self._table.shape
        cells = rows * max(width, before)
        if cells * ITEM > SPARSE_BYTES and cells > SPARSE_SHARE * self._entries:
            raise self._error(
                f"{rows:,} rows of {max(width, before):,} features have too few values for a dense "
                f"table: {self._entries:,}",
                line,
                "Renumber the features from 1 without gaps.",
            )
        if width > before:
            wider = np.zeros((room, width), np.float32)
            wider[:, :before] = self._table
            self._table = wider
        if rows > room:  # the C library moves no large array
            self._table.resize((rows * 5 // 4 + 100, max(width, before)), refcheck=False)

    def _repeated(self, query: str, line: int) -> DataError:
        file, first_line = self._places[query]
        if file == len(self.files) - 1:
            problem = (
                f"query {query!r} reappears after other queries; it began at line {first_line}"
            )
            return self._error(problem, line, "Keep the rows of a query together.")
        problem = f"query {query!r} is already in {self.files[file].path}:{first_line}"
        return self._error(problem, line, "A query belongs to one split only.")

    def _broken(self, problem: str, line: int) -> DataError:
        return self._error(problem, line, "Download or copy it again.")

    def _error(self, problem: str, line: int, remedy: str) -> DataError:
        return DataError(problem, path=self.files[-1].path, line=line, remedy=remedy)


def _texts(file: BufferedReader) -> Iterator[bytes]:
    """Yield the lines of a file, without its byte-order mark; of a long one, the beginning."""
    zipped = file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
    opened = gzip.GzipFile(fileobj=file) if zipped else file
    lines = iter(partial(opened.readline, MAX_LINE + 1), b"")
    first = next(lines, b"").removeprefix(UTF8_BOM)
    if first:
        yield first
    yield from lines


def unreadable(path: Path, error: OSError) -> DataError:
    """Return the error for a file that the system refuses to read."""
    return DataError(f"cannot be read: {error.strerror or error}", path=path)


def parse_row(line: bytes) -> Row | None:
    """Return the row of a line; None if it is blank, or only a comment.

    Raises:
        BadLine: if it is anything else.
    """
    content = line.rstrip(b"\n").removesuffix(b"\r").partition(b"#")[0]
    match = ROW.fullmatch(content)
    if match is None or b"\0" in line:
        if content.strip(b" \t") or b"\0" in line:
            raise _explained(line, content)
        return None
    numbers = np.fromstring(match[3].replace(b":", b" "), sep=" ")
    ids = numbers[::2]
    with np.errstate(over="ignore"):
        values = numbers[1::2].astype(np.float32)
    label, ascending = int(match[1]), ids[0] >= 1 and bool((np.diff(ids) > 0).all())
    fine = label <= MAX_LABEL and ascending and ids[-1] <= MAX_FEATURE
    if not (fine and np.isfinite(values).all()):
        raise _explained(line, content)
    try:
        return Row(label, match[2].decode(), ids.astype(np.int64), values)
    except UnicodeDecodeError:
        raise _explained(line, content) from None


def _explained(line: bytes, content: bytes) -> BadLine:
    """Return what is wrong with the first bad token of a line."""
    try:
        line.replace(b"\0", b"\xff").decode()  # neither byte occurs in text
    except UnicodeDecodeError as error:
        problem = f"not text: byte 0x{line[error.start]:02x} in column {error.start + 1}"
        return BadLine(problem, "Give LETOR text, plain or gzip, not a binary file.")
    label, query, *features = [*re.findall(rb"[^ \t]+", content), b"", b""]
    if not (match := re.fullmatch(LABEL, label)) or int(match[1]) > MAX_LABEL:
        return BadLine(
            f"{_shown(label)} is not a label, a whole number from 0 to {MAX_LABEL}",
            "Start the row with one, as in 2 qid:10 1:0.5.",
        )
    if not re.fullmatch(QUERY, query):
        return BadLine(
            f"{_shown(query)} is not a query id, which is qid: and 1 to 256 bytes",
            "Write it after the label, as in 2 qid:10 1:0.5.",
        )
    last = 0
    for token in filter(None, features):
        name, _, value = token.partition(b":")
        number = int(name) if re.fullmatch(rb"[0-9]{1,100}", name) and b":" in token else 0
        if not 1 <= number <= MAX_FEATURE:
            problem = f"{_shown(token)} is not a feature with a number from 1 to {MAX_FEATURE}"
            return BadLine(problem, "Write features as in 1:0.5.")
        if number <= last:
            problem = f"feature {number} does not come after the one before it"
            return BadLine(problem, "List each feature once, in ascending order.")
        with np.errstate(over="ignore"):
            if not re.fullmatch(NUMBER, value) or not np.isfinite(np.float32(float(value))):
                problem = f"value {_shown(value)} of feature {number} is not a finite 32-bit number"
                return BadLine(problem, "Write it as in 1:0.5.")
        last = number
    return BadLine("row has no features", "Write at least one, as in 2 qid:10 1:0.")


def _shown(token: bytes) -> str:
    text = token.decode()
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "…")
