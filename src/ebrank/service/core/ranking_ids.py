"""Ids of rankings: a number that finds the row, and a tag that nobody can guess.

The number grows with time, so it also keeps a store's rankings in order; 16 random digits after it
keep a caller from citing other callers' lists.

>>> ids = RankingIds()
>>> first, second = ids.new(1700000000.0), ids.new(1700000000.0)
>>> number_of(first), number_of(second)
(1700000000000000, 1700000000000001)
>>> number_of("7") is None
True
"""

from __future__ import annotations

import re
import secrets

PER_SECOND = 1_000_000

_SHAPE = re.compile(r"([0-9a-f]{1,15})-[0-9a-f]{16}")


class RankingIds:
    """Makes names, each with a higher number than the one before."""

    def __init__(self, after: float = 0.0) -> None:
        """Start after a time: that of the last ranking in the log."""
        self._last = int(after * PER_SECOND) + 1

    def new(self, time: float) -> str:
        """Return the name of a ranking made at this time."""
        self._last = max(self._last + 1, int(time * PER_SECOND))
        return f"{self._last:x}-{secrets.token_hex(8)}"


def number_of(ranking_id: str) -> int | None:
    """Return the number in a name, None if it cannot be one of ours."""
    found = _SHAPE.fullmatch(ranking_id)
    return int(found.group(1), 16) if found else None


def time_of(ranking_id: str) -> float | None:
    """Return about when a ranking was made, None if it cannot be one of ours."""
    number = number_of(ranking_id)
    return None if number is None else number / PER_SECOND
