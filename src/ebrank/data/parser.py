"""The parser: bytes of LETOR text in, sparse rows out, stopping at the first bad line.

`parse` takes whole lines and returns them as a `Chunk`. The compiled `_scan` does nearly all of the
work, without the GIL, and keeps no state: several threads parse chunks at once.

Values are exact: a decimal whose digits make a whole number up to 2^53 and whose power of ten is at
most 22 is one correctly rounded product or quotient of two exact doubles. Python's `float` handles
the few others, so each value equals `np.float32(float(token))`.

>>> chunk = parse(b"2 qid:7 1:0.5 3:1e-3 # a comment\\n0 qid:7 2:4\\n1 qid:8 1:x\\n")
>>> chunk.labels.tolist(), chunk.row_ends.tolist(), chunk.ids.tolist(), chunk.query_ids
([2, 0], [2, 3], [1, 3, 2], ['7'])
>>> chunk.bad_line
BadLine(line=3, problem="value 'x' of feature 1 is not a number", remedy='Write it as in 1:0.5.')
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ebrank.data.interpretation import MAX_FEATURE, MAX_LABEL
from ebrank.kernels.compiled import kernel
from ebrank.typing import Features, Ints, Labels, SmallInts

Bytes: TypeAlias = npt.NDArray[np.uint8]

MAX_QUERY_ID = 256  # bytes
NUMBER = re.compile(rb"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
FINE, SLOW, MALFORMED = 0, 1, 2  # kinds of values
MAX_EXACT = 2**53
MAX_EXPONENT = 1_000_000  # beyond it every value is zero or infinite
POWERS = np.array([float(f"1e{k}") for k in range(23)])  # all exact in double precision

# What the scan reports of a bad line; `explain` says it in words.
LABEL, LABEL_RANGE, QUERY, QUERY_LENGTH, NO_FEATURES, NOT_TEXT = 1, 2, 3, 4, 5, 6
FEATURE, FEATURE_RANGE, FEATURE_ORDER, VALUE, OVERFLOW = 7, 8, 9, 10, 11

SHOWN = 40  # characters of a bad token that a message repeats


class BadLine(NamedTuple):
    """A bad line, counted from 1, what is wrong with it, and what to do."""

    line: int
    problem: str
    remedy: str


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines, parsed: sparse rows, the runs of rows that share a query, a bad line.

    Attributes:
        lines: number of lines in the text.
        labels: label of each row.
        row_ends: for each row, the end of its entries in `ids` and `values`.
        ids: feature number of each entry, ascending within a row.
        values: value of each entry.
        query_ids: id of each run of rows.
        query_rows: first row of each run.
        query_lines: line of that row, counted from 1.
        label_lines: for each label, the first line that has it, or 0.
        bad_line: the first one, if any; rows stop before it.
    """

    lines: int
    labels: Labels
    row_ends: Ints
    ids: SmallInts
    values: Features
    query_ids: list[str]
    query_rows: Ints
    query_lines: Ints
    label_lines: Ints
    bad_line: BadLine | None


def parse(text: bytes) -> Chunk:
    """Return the rows of whole lines; the last may lack its line end."""
    if not text.endswith(b"\n"):
        text += b"\n"  # every loop of the scan stops at a line end, so there must be one
    columns = _room_for(len(text))
    code, position, lines, rows, entries, queries, slow = _scan(
        np.frombuffer(text, np.uint8), columns
    )
    bad_lines = [explain(code, text, position)] if code else []
    bad_lines += _settle_slow_values(text, columns, slow)
    query_ids, undecodable = _query_ids(text, columns, queries)
    queries = len(query_ids)
    bad_lines += undecodable
    return Chunk(
        lines,
        columns.labels[:rows],
        columns.row_ends[:rows],
        columns.ids[:entries],
        columns.values[:entries],
        query_ids,
        columns.query_rows[:queries],
        columns.query_lines[:queries],
        columns.label_lines,
        min(bad_lines, key=lambda bad: bad.line, default=None),
    )


def _settle_slow_values(text: bytes, columns: Columns, slow: int) -> list[BadLine]:
    """Fill in the values the scan could not compute exactly; return the first too large one."""
    with np.errstate(over="ignore"):
        for entry, start in zip(
            columns.slow_entries[:slow], columns.slow_starts[:slow], strict=True
        ):
            token = NUMBER.match(text, int(start))
            assert token is not None, "the scan accepted a value the pattern does not know"
            value = np.float32(float(token[0]))
            if np.isinf(value):
                return [explain(OVERFLOW, text, int(start))]
            columns.values[entry] = value
    return []


def _query_ids(text: bytes, columns: Columns, queries: int) -> tuple[list[str], list[BadLine]]:
    """Return the ids of the runs as text, and the first that cannot be decoded."""
    ids = []
    bounds = zip(columns.query_starts[:queries], columns.query_stops[:queries], strict=True)
    for start, stop in bounds:
        try:
            ids.append(text[start:stop].decode())
        except UnicodeDecodeError:
            return ids, [explain(NOT_TEXT, text, int(start))]
    return ids, []


class Columns(NamedTuple):
    """Arrays that the scan fills, long enough for any text of the given size."""

    labels: Labels
    row_ends: Ints
    ids: SmallInts
    values: Features
    query_rows: Ints
    query_lines: Ints
    query_starts: Ints
    query_stops: Ints
    slow_entries: Ints
    slow_starts: Ints
    label_lines: Ints


def _room_for(size: int) -> Columns:
    """Return room for `size` bytes: the shortest row is `0 qid:1 1:0`, the shortest entry ` 1:0`.

    Memory that is never touched is never allocated, so ample room costs nothing.
    """
    rows, entries = size // 12 + 1, size // 4 + 1
    return Columns(
        labels=np.empty(rows, np.int8),
        row_ends=np.empty(rows, np.int64),
        ids=np.empty(entries, np.int32),
        values=np.empty(entries, np.float32),
        query_rows=np.empty(rows, np.int64),
        query_lines=np.empty(rows, np.int64),
        query_starts=np.empty(rows, np.int64),
        query_stops=np.empty(rows, np.int64),
        slow_entries=np.empty(entries, np.int64),
        slow_starts=np.empty(entries, np.int64),
        label_lines=np.zeros(MAX_LABEL + 1, np.int64),
    )


@kernel
def _scan(text: Bytes, columns: Columns) -> tuple[int, int, int, int, int, int, int]:
    """Fill the columns; return (code, position, lines, rows, entries, queries, slow).

    The code is 0, or says what is wrong at the position.
    """
    position, line, row, entry, query, slow, code = 0, 0, 0, 0, 0, 0, 0
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
            if query == 0 or not _same(
                text, start, stop, columns.query_starts[query - 1], columns.query_stops[query - 1]
            ):
                columns.query_rows[query] = row
                columns.query_lines[query] = line
                columns.query_starts[query] = start
                columns.query_stops[query] = stop
                query += 1
            row += 1
        code, position = _after_line(text, position)
        if code:
            break
    return code, position, line, row, entry, query, slow


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
    separated = text[position] == 32 or text[position] == 9 or _ends_content(text, position)
    if position == start or not separated:
        return LABEL, start, label
    if label > MAX_LABEL:
        return LABEL_RANGE, start, label
    return 0, position, label


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
    separated = text[stop] == 32 or text[stop] == 9 or _ends_content(text, stop)
    if stop == start or not separated:
        return QUERY, token, 0
    if stop - start > MAX_QUERY_ID:
        return QUERY_LENGTH, token, 0
    return 0, start, stop


@kernel
def _features(
    text: Bytes, position: int, columns: Columns, entry: int, slow: int
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
        if feature == 0 or feature > MAX_FEATURE:
            return FEATURE_RANGE, start, entry, slow
        if feature <= previous:
            return FEATURE_ORDER, start, entry, slow
        value_start = position + 1
        kind, position, value = _value(text, value_start)
        if kind == MALFORMED:
            return VALUE, start, entry, slow
        if kind == SLOW:
            columns.slow_entries[slow] = entry
            columns.slow_starts[slow] = value_start
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


# --- bad lines, in words -------------------------------------------------------------------------


def explain(code: int, text: bytes, position: int) -> BadLine:
    """Return what is wrong at this position of the text."""
    line = text.count(b"\n", 0, position) + 1
    start = text.rfind(b"\n", 0, position) + 1
    content = text[start : text.find(b"\n", position)]
    strange = _byte_that_is_not_text(content)
    if strange is not None:
        problem = f"not text: byte 0x{content[strange]:02x} in column {strange + 1}"
        return BadLine(line, problem, "Give LETOR text, plain or gzip, not a binary file.")
    token = content[position - start :].partition(b"#")[0].decode().split(maxsplit=1)
    return BadLine(line, *_words(code, token[0] if token else ""))


def _byte_that_is_not_text(content: bytes) -> int | None:
    """Return the index of the first byte that does not occur in text."""
    zero = content.find(b"\0")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.start if zero < 0 else min(zero, error.start)
    return None if zero < 0 else zero


def _words(code: int, token: str) -> tuple[str, str]:
    """Return the problem and the remedy."""
    shown = repr(token if len(token) <= SHOWN else token[:SHOWN] + "…")
    if code == LABEL:
        if token.startswith("qid:"):
            return "label is missing", "Start the row with it, as in 2 qid:10 1:0.5."
        return f"label {shown} is not a whole number from 0 up", "Write it as in 2 qid:10 1:0.5."
    if code == LABEL_RANGE:
        return f"label {shown} is over {MAX_LABEL}", "Relevance labels are small whole numbers."
    if code == QUERY:
        problem = f"query id {shown} is malformed" if token else "query id is missing"
        if token and not token.startswith("qid:"):
            problem = f"query id is missing: found {shown} after the label"
        return problem, "Write it after the label, as in 2 qid:10 1:0.5."
    if code == QUERY_LENGTH:
        return f"query id {shown} is longer than {MAX_QUERY_ID} bytes", "Shorten it."
    if code == NO_FEATURES:
        return "row has no features", "Write at least one, as in 2 qid:10 1:0."
    return _words_on_features(code, token, shown)


def _words_on_features(code: int, token: str, shown: str) -> tuple[str, str]:
    """Return the problem and the remedy for one `id:value`."""
    feature, _, value = token.partition(":")
    value = repr(value if len(value) <= SHOWN else value[:SHOWN] + "…")
    feature = feature[:SHOWN]
    if code == FEATURE_RANGE:
        return f"feature id {feature} is not from 1 to {MAX_FEATURE}", "Renumber the features."
    if code == FEATURE_ORDER:
        problem = f"feature id {feature} does not come after the one before it"
        return problem, "List each feature once, in ascending order."
    if code == VALUE:
        problem = f"value {value} of feature {feature} is not a number"
        if value == "''":
            problem = f"value of feature {feature} is missing"
        elif value.strip("'+-").lower() in ("nan", "inf", "infinity"):
            problem = f"value {value} of feature {feature} is not finite"
        return problem, "Write it as in 1:0.5."
    if code == OVERFLOW:
        return f"value {shown} is too large for a 32-bit float", "Scale the feature down."
    return f"feature {shown} is malformed", "Write it as in 1:0.5."
