"""The parser: bytes of LETOR text in, sparse rows out, stopping at the first bad line.

`parse` takes whole lines and returns them as a `Chunk`. The compiled `scanner` does nearly all of
the work, without the GIL, and keeps no state: several threads parse chunks at once. The few values
it cannot settle exactly are left to Python's `float`, so each equals `np.float32(float(token))`.

>>> chunk = parse(b"2 qid:7 1:0.5 3:1e-3 # a comment\\n0 qid:7 2:4\\n1 qid:8 1:x\\n")
>>> chunk.labels.tolist(), chunk.row_ends.tolist(), chunk.ids.tolist(), chunk.query_ids
([2, 0], [2, 3], [1, 3, 2], ['7'])
>>> chunk.flaw
Flaw(line=3, problem="value 'x' of feature 1 is not a number", remedy='Write it as in 1:0.5.')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ebrank.data.dataset import Int8Array
from ebrank.data.flaws import NOT_TEXT, OVERFLOW, Flaw, explain
from ebrank.data.scanner import Columns, columns, scan
from ebrank.typing import Features, Ints, SmallInts

NUMBER = re.compile(rb"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines, parsed: sparse rows, the runs of rows that share a query, and any flaw.

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
        flaw: the first bad line; rows stop before it.
    """

    lines: int
    labels: Int8Array
    row_ends: Ints
    ids: SmallInts
    values: Features
    query_ids: list[str]
    query_rows: Ints
    query_lines: Ints
    label_lines: Ints
    flaw: Flaw | None


def parse(text: bytes) -> Chunk:
    """Return the rows of whole lines; the last may lack its line end."""
    if not text.endswith(b"\n"):
        text += b"\n"  # every loop of the scan stops at a line end, so there must be one
    found = columns(len(text))
    code, position, lines, rows, entries, queries, slow = scan(np.frombuffer(text, np.uint8), found)
    flaws = [explain(code, text, position)] if code else []
    flaws += _settle_slow_values(text, found, slow)
    query_ids, undecodable = _query_ids(text, found, queries)
    queries = len(query_ids)
    flaws += undecodable
    return Chunk(
        lines,
        found.labels[:rows],
        found.row_ends[:rows],
        found.ids[:entries],
        found.values[:entries],
        query_ids,
        found.query_rows[:queries],
        found.query_lines[:queries],
        found.label_lines,
        min(flaws, key=lambda flaw: flaw.line, default=None),
    )


def _settle_slow_values(text: bytes, found: Columns, slow: int) -> list[Flaw]:
    """Fill in the values the scan could not settle exactly; return the first that is too large."""
    with np.errstate(over="ignore"):
        for entry, start in zip(found.slow_entries[:slow], found.slow_starts[:slow], strict=True):
            token = NUMBER.match(text, int(start))
            assert token is not None, "the scan accepted a value the pattern does not know"
            value = np.float32(float(token[0]))
            if np.isinf(value):
                return [explain(OVERFLOW, text, int(start))]
            found.values[entry] = value
    return []


def _query_ids(text: bytes, found: Columns, queries: int) -> tuple[list[str], list[Flaw]]:
    """Return the ids of the runs as text, and the first that is no text."""
    ids = []
    bounds = zip(found.query_starts[:queries], found.query_stops[:queries], strict=True)
    for start, stop in bounds:
        try:
            ids.append(text[start:stop].decode())
        except UnicodeDecodeError:
            return ids, [explain(NOT_TEXT, text, int(start))]
    return ids, []
