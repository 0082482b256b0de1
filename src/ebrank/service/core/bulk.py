"""Many items of the catalog at once, as lines of JSON, each validated separately.

>>> import asyncio
>>> from ebrank.service.store.memory import MemoryStore
>>> async def pieces() -> AsyncIterator[bytes]:
...     yield b'{"id": "sencha", "features": {"price": 0.4}}\\n{"id": "ass'
...     yield b'am", "features": {"price": 0.2}}\\n{"id": "oolong", "features": {"prize": 0.9}}\\n'
>>> answer = asyncio.run(load(Catalog(MemoryStore()), pieces(), clock=lambda: 1.0))
>>> answer.changed, answer.errors
(2, [LineError(line=3, reason="item 'oolong' has an unknown feature 'prize' (known: price)")])
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from ebrank.service import api
from ebrank.service.core.catalog import Catalog
from ebrank.service.core.problems import Problem

AT_ONCE = 100
"""Lines per transaction: two milliseconds, during which nobody else is served."""
LONGEST_LINE = 2**20
MOST_ERRORS = 100
"""Errors that the response lists; all of them are counted."""

Line: TypeAlias = tuple[int, bytes]
"""A line with its number, from 1."""

_read_item = msgspec.json.Decoder(api.ItemIn).decode


@dataclass
class _Outcome:
    lines: int = 0
    changed: int = 0
    rejected: int = 0
    errors: list[api.LineError] = field(default_factory=list)

    def refuse(self, line: int, reason: str) -> None:
        self.rejected += 1
        if len(self.errors) < MOST_ERRORS:
            self.errors.append(api.LineError(line, reason))

    def response(self) -> api.BulkResponse:
        unchanged = self.lines - self.changed - self.rejected
        return api.BulkResponse(self.lines, self.changed, unchanged, self.rejected, self.errors)


async def load(
    catalog: Catalog, pieces: AsyncIterator[bytes], clock: Callable[[], float]
) -> api.BulkResponse:
    """Add items or change their shared features; on disk after the next flush.

    If it fails midway, earlier lines are stored; sent again, they change nothing.

    Raises:
        Problem: if a line is too long to be read.
    """
    outcome = _Outcome()
    async for lines in _batches(pieces):
        await _store(catalog, lines, clock(), outcome)
        await asyncio.sleep(0)  # a turn for others
    return outcome.response()


async def _batches(pieces: AsyncIterator[bytes]) -> AsyncIterator[Sequence[Line]]:
    """Yield the non-empty lines of a text that comes in pieces, some at a time."""
    number, rest = 1, b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for begin in range(0, len(whole), AT_ONCE):
            yield [*enumerate(whole[begin : begin + AT_ONCE], number + begin)]
        number += len(whole)
        if len(rest) > LONGEST_LINE:
            raise Problem(f"line {number} is longer than {LONGEST_LINE:,} bytes")
    yield [(number, rest)]


async def _store(catalog: Catalog, lines: Sequence[Line], now: float, outcome: _Outcome) -> None:
    items: dict[int, api.ItemIn] = {}
    refused: dict[int, str] = {}
    for number, line in lines:
        if line.strip():
            outcome.lines += 1
            try:
                items[number] = _read_item(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
                refused[number] = str(problem)
    try:
        outcome.changed += await catalog.put(list(items.values()), now)
    except Problem:
        reasons = catalog.reasons(list(items.values()))
        bad = {number: why for number, why in zip(items, reasons, strict=True) if why is not None}
        refused |= bad
        good = [item for number, item in items.items() if number not in bad]
        outcome.changed += await catalog.put(good, now)
    for number in sorted(refused):
        outcome.refuse(number, refused[number])
