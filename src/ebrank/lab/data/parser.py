"""The parser: bytes of LETOR text in, sparse rows out, stopping at the first bad line.

`parse` takes whole lines and returns them as a `Chunk`. The compiled `_scan` does nearly all of the
work, without the GIL, and keeps no state: several threads parse chunks at once.

Values are exact: a decimal whose digits make a whole number up to 2^53 and whose power of ten is at
most 22 is one correctly rounded product or quotient of two exact doubles. Python's `float` handles
the few others, so each value equals `np.float32(float(token))`.

>>> chunk = parse(b"2 qid:7 1:0.5 3:1e-3 # a comment\\n0 qid:7 2:4\\n1 qid:8 1:x\\n")
>>> columns = chunk.columns
>>> columns.labels.tolist(), columns.row_ends.tolist(), columns.ids.tolist(), chunk.query_ids
([2, 0], [2, 3], [1, 3, 2], ['7'])
>>> chunk.bad_line.line, chunk.bad_line.problem
(3, "value 'x' of feature 1 is not a finite 32-bit number")
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ebrank.kernels.compiled import kernel
from ebrank.lab.data.interpretation import MAX_FEATURE, MAX_LABEL
from ebrank.typing import Features, Ints, Labels, SmallInts

Bytes: TypeAlias = npt.NDArray[np.uint8]

MAX_QUERY_ID = 256  # bytes
FEATURE_VALUE = re.compile(rb"[0-9]+:([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)")
FINE, SLOW, MALFORMED = 0, 1, 2  # kinds of values
MAX_EXACT = 2**53
MAX_EXPONENT = 1_000_000  # beyond it every value is zero or infinite
POWERS = np.array([float(f"1e{k}") for k in range(23)])  # all exact in double precision

# What the scan reports of a bad line, and how that is said of the token that it stopped at.
LABEL, QUERY, NO_FEATURES, NOT_TEXT, FEATURE, ORDER, VALUE = 1, 2, 3, 4, 5, 6, 7
PROBLEMS = {
    LABEL: (
        f"{{token!r}} is not a label, a whole number from 0 to {MAX_LABEL}",
        "Start the row with one, as in 2 qid:10 1:0.5.",
    ),
    QUERY: (
        f"{{token!r}} is not a query id, which is qid: and 1 to {MAX_QUERY_ID} bytes",
        "Write it after the label, as in 2 qid:10 1:0.5.",
    ),
    NO_FEATURES: ("row has no features", "Write at least one, as in 2 qid:10 1:0."),
    FEATURE: (
        f"{{token!r}} is not a feature with a number from 1 to {MAX_FEATURE}",
        "Write features as in 1:0.5.",
    ),
    ORDER: (
        "feature {feature} does not come after the one before it",
        "List each feature once, in ascending order.",
    ),
    VALUE: (
        "value {value!r} of feature {feature} is not a finite 32-bit number",
        "Write it as in 1:0.5.",
    ),
}
SHOWN = 40  # characters of a bad token that a message repeats


class BadLine(NamedTuple):
    """A bad line, counted from 1, what is wrong with it, and what to do."""

    line: int
    problem: str
    remedy: str


class SparseRows(NamedTuple):
    """Arrays that the scan fills.

    Attributes:
        labels: label of each row.
        row_ends: for each row, the end of its entries in `ids` and `values`.
        ids: feature number of each entry, ascending within a row.
        values: value of each entry.
        runs: for each run of rows that share a query, the first row, its line, counted from 1, and
            where the query's id starts and stops.
        slow: for each value that the scan could not compute exactly, its entry, and where that
            starts.
        label_lines: for each label, the first line that has it, or 0.
    """

    labels: Labels
    row_ends: Ints
    ids: SmallInts
    values: Features
    runs: Ints
    slow: Ints
    label_lines: Ints

    @classmethod
    def for_text(cls, size: int) -> SparseRows:
        """Allocate arrays for a text: the shortest row is `0 qid:1 1:0`, the shortest entry ` 1:0`.

        Memory that is never touched is never allocated, so ample room costs nothing.
        """
        rows, entries = size // 12 + 1, size // 4 + 1
        return cls(
            labels=np.empty(rows, np.int8),
            row_ends=np.empty(rows, np.int64),
            ids=np.empty(entries, np.int32),
            values=np.empty(entries, np.float32),
            runs=np.empty((rows, 4), np.int64),
            slow=np.empty((entries, 2), np.int64),
            label_lines=np.zeros(MAX_LABEL + 1, np.int64),
        )


class Chunk(NamedTuple):
    """Consecutive lines, parsed.

    Attributes:
        lines: number of lines in the text.
        columns: its sparse rows, and the runs of rows that share a query.
        query_ids: id of each run.
        bad_line: the first one, if any; rows stop before it.
    """

    lines: int
    columns: SparseRows
    query_ids: list[str]
    bad_line: BadLine | None


def parse(text: bytes) -> Chunk:
    """Return the rows of whole lines; the last may lack its line end."""
    if not text.endswith(b"\n"):
        text += b"\n"  # every loop of the scan stops at a line end, so there must be one
    room = SparseRows.for_text(len(text))
    code, position, lines, rows, entries, runs, slow = _scan(np.frombuffer(text, np.uint8), room)
    bad_lines = [explain(code, text, position)] if code else []
    bad_lines += _settle_slow_values(text, room.values, room.slow[:slow])
    query_ids, undecodable = _query_ids(text, room.runs[:runs])
    columns = SparseRows(
        room.labels[:rows],
        room.row_ends[:rows],
        room.ids[:entries],
        room.values[:entries],
        room.runs[: len(query_ids)],
        room.slow[:slow],
        room.label_lines,
    )
    bad_lines += undecodable
    return Chunk(lines, columns, query_ids, min(bad_lines, default=None))


def _settle_slow_values(text: bytes, values: Features, slow: Ints) -> list[BadLine]:
    """Fill in the values the scan could not compute exactly; return the first too large one."""
    with np.errstate(over="ignore"):
        for entry, start in slow.tolist():
            token = FEATURE_VALUE.match(text, start)
            assert token is not None, "the scan accepted a value the pattern does not know"
            values[entry] = np.float32(float(token[1]))
            if np.isinf(values[entry]):
                return [explain(VALUE, text, start)]
    return []


def _query_ids(text: bytes, runs: Ints) -> tuple[list[str], list[BadLine]]:
    """Return the ids of the runs as text, and the first that cannot be decoded."""
    ids = []
    for start, stop in runs[:, 2:].tolist():
        try:
            ids.append(text[start:stop].decode())
        except UnicodeDecodeError:
            return ids, [explain(NOT_TEXT, text, start)]
    return ids, []


def explain(code: int, text: bytes, position: int) -> BadLine:
    """Return what is wrong at this position of the text."""
    line = text.count(b"\n", 0, position) + 1
    start = text.rfind(b"\n", 0, position) + 1
    content = text[start : text.find(b"\n", position)]
    try:
        content.replace(b"\0", b"\xff").decode()  # neither byte occurs in text
    except UnicodeDecodeError as error:
        problem = f"not text: byte 0x{content[error.start]:02x} in column {error.start + 1}"
        return BadLine(line, problem, "Give LETOR text, plain or gzip, not a binary file.")
    tokens = content[position - start :].partition(b"#")[0].decode().split(maxsplit=1)
    token = tokens[0] if tokens else ""
    token = token if len(token) <= SHOWN else token[:SHOWN] + "…"
    feature, _, value = token.partition(":")
    problem, remedy = PROBLEMS[code]
    return BadLine(line, problem.format(token=token, feature=feature, value=value), remedy)


@kernel
def _scan(text: Bytes, columns: SparseRows) -> tuple[int, int, int, int, int, int, int]:
    """Fill the columns; return (code, position, lines, rows, entries, runs, slow).

    The code is 0, or says what is wrong at the position.
    """
    position, line, row, entry, runs, slow, code = 0, 0, 0, 0, 0, 0, 0
    while position < len(text):
        line += 1
        position = _after_blanks(text, position)
        if not _ends_content(text, position):
            code, position, label = _label(text, position)
            if code:
                break
            code, start, stop = _query(text, position)
            if code:
                position = start
                break
            code, position, entry, slow = _features(text, stop, columns, entry, slow)
            if code:
                break
            columns.labels[row] = label
            columns.row_ends[row] = entry
            if columns.label_lines[label] == 0:
                columns.label_lines[label] = line
            last = columns.runs[runs - 1]
            if runs == 0 or not _same(text, start, stop, last[2], last[3]):
                run = columns.runs[runs]
                run[0], run[1], run[2], run[3] = row, line, start, stop
                runs += 1
            row += 1
        code, position = _after_line(text, position)
        if code:
            break
    return code, position, line, row, entry, runs, slow


@kernel
def _after_blanks(text: Bytes, position: int) -> int:
    while text[position] == 32 or text[position] == 9:
        position += 1
    return position


@kernel
def _ends_content(text: Bytes, position: int) -> bool:
    """Whether the line's content ends here: at `\\n`, `\\r\\n` or `#`."""
    byte = text[position]
    return bool(byte == 10 or byte == 35 or (byte == 13 and text[position + 1] == 10))


@kernel
def _ends_token(text: Bytes, position: int) -> bool:
    """Whether a token ends here: at a blank, or with the line's content."""
    return bool(text[position] == 32 or text[position] == 9) or _ends_content(text, position)


@kernel
def _after_line(text: Bytes, position: int) -> tuple[int, int]:
    """Return (code, start of the next line); a comment may hold anything but a zero byte."""
    while text[position] != 10:
        if text[position] == 0:
            return NOT_TEXT, position
        position += 1
    return 0, position + 1


@kernel
def _digit(text: Bytes, position: int) -> np.int64:
    """Return the digit here as a signed number: Numba would turn unsigned ones into floats."""
    return np.int64(text[position]) - 48


@kernel
def _digits(text: Bytes, position: int, limit: int) -> tuple[int, np.int64]:
    """Return (position after the digits, their number, or one over `limit` if it is over)."""
    number = np.int64(0)
    while 48 <= text[position] <= 57:
        if number <= limit:
            number = number * 10 + _digit(text, position)
        position += 1
    return position, number


@kernel
def _label(text: Bytes, start: int) -> tuple[int, int, np.int64]:
    """Return (code, position, label)."""
    position, label = _digits(text, start, MAX_LABEL)
    if position > start and text[position] == 46:  # as in 1.0, which is a whole number, too
        position += 1
        while text[position] == 48:
            position += 1
    good = position > start and label <= MAX_LABEL and _ends_token(text, position)
    return (0, position, label) if good else (LABEL, start, label)


@kernel
def _query(text: Bytes, position: int) -> tuple[int, int, int]:
    """Return (code, start, stop) of the query id; start is the token's unless the code is 0."""
    token = _after_blanks(text, position)
    if text[token] != 113 or text[token + 1] != 105 or text[token + 2] != 100:  # q i d
        return QUERY, token, 0
    if text[token + 3] != 58:  # a colon
        return QUERY, token, 0
    start = stop = token + 4
    while text[stop] > 32 and text[stop] != 35 and text[stop] != 127:
        stop += 1
    good = 0 < stop - start <= MAX_QUERY_ID and _ends_token(text, stop)
    return (0, start, stop) if good else (QUERY, token, 0)


@kernel
def _features(
    text: Bytes, position: int, columns: SparseRows, entry: int, slow: int
) -> tuple[int, int, int, int]:
    """Store the entries of a row; return (code, position, entry, slow)."""
    previous = np.int64(0)
    while True:
        start = _after_blanks(text, position)
        if _ends_content(text, start):
            return (0 if previous else NO_FEATURES), start, entry, slow
        position, feature = _digits(text, start, MAX_FEATURE)
        if position == start or text[position] != 58:
            return FEATURE, start, entry, slow
        if feature == 0 or feature > MAX_FEATURE:  # in one test with the above, it is slower
            return FEATURE, start, entry, slow
        if feature <= previous:
            return ORDER, start, entry, slow
        kind, position, value = _value(text, position + 1)
        if kind == MALFORMED:
            return VALUE, start, entry, slow
        if kind == SLOW:
            columns.slow[slow, 0], columns.slow[slow, 1] = entry, start
            slow += 1
        columns.ids[entry] = feature
        columns.values[entry] = value
        entry += 1
        previous = feature


@kernel
def _value(text: Bytes, position: int) -> tuple[int, int, float]:
    """Return (kind, position after it, value) of a decimal number."""
    negative = text[position] == 45
    if negative or text[position] == 43:
        position += 1
    # Beyond 18 digits the mantissa may wrap around; then Python computes the number.
    first, mantissa, power = position, np.int64(0), np.int64(0)
    while 48 <= text[position] <= 57:
        mantissa = mantissa * 10 + _digit(text, position)
        position += 1
    digits = position - first
    if text[position] == 46:
        point = position
        position += 1
        while 48 <= text[position] <= 57:
            mantissa = mantissa * 10 + _digit(text, position)
            position += 1
        power = np.int64(point + 1 - position)
        digits += position - point - 1
    if digits == 0:
        return MALFORMED, position, 0.0
    if text[position] == 101 or text[position] == 69:
        sign = -1 if text[position + 1] == 45 else 1
        start = position + (2 if sign == -1 or text[position + 1] == 43 else 1)
        position, exponent = _digits(text, start, MAX_EXPONENT)
        if position == start:
            return MALFORMED, position, 0.0
        power += sign * exponent
    if not (text[position] == 32 or _ends_content(text, position) or text[position] == 9):
        return MALFORMED, position, 0.0
    if digits > 18 or mantissa > MAX_EXACT or power < -22 or power > 22:
        return SLOW, position, 0.0
    value = mantissa / POWERS[-power] if power < 0 else mantissa * POWERS[power]
    return FINE, position, -value if negative else value


@kernel
def _same(text: Bytes, start: int, stop: int, other: int, other_stop: int) -> bool:
    """Whether two stretches of the text are equal."""
    if stop - start != other_stop - other:
        return False
    for offset in range(stop - start):  # noqa: SIM110 (kernels have no generators)
        if text[start + offset] != text[other + offset]:
            return False
    return True
