"""The weighted sums of one item's counts, as plain functions that kernels inline.

`counts` is an item's block of (1 + behaviors) × slots whole numbers, impressions first; `table` is
that of a `Valuation`. Both may be an array or, in compiled code, a pointer. Sums other than
`shown_sum` are in units of 2⁻³⁰.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from ebrank.evidence.valuation import UNIT
from ebrank.kernels.registry import register

Numbers: TypeAlias = Sequence[Any]


class ItemCounts(NamedTuple):
    """The counts of one item, and how to read them: what functions of exact evidence take."""

    counts: Numbers
    slots: int
    behaviors: int
    table: Numbers


def shown_sum(counts: Numbers, slots: int, table: Numbers) -> int:
    """Return n, the impressions at slots that users examine."""
    return row_sum(counts, 0, table, 0, slots)


def exposure_sum(counts: Numbers, slots: int, table: Numbers) -> int:
    """Return E = Σ p over impressions."""
    return row_sum(counts, 0, table, slots, slots)


def clicks_sum(counts: Numbers, slots: int, behaviors: int, table: Numbers) -> int:
    """Return c = Σ w over outcomes."""
    total = row_sum(counts, slots, table, 2 * slots, slots)
    for behavior in range(2, 1 + behaviors):
        total += row_sum(counts, behavior * slots, table, (1 + behavior) * slots, slots)
    return total


def weighted_clicks_sum(counts: Numbers, slots: int, behaviors: int, table: Numbers) -> int:
    """Return C = Σ w/p over outcomes."""
    total = 0
    for behavior in range(1, 1 + behaviors):
        worth = (1 + behaviors + behavior) * slots
        total += row_sum(counts, behavior * slots, table, worth, slots)
    return total


def row_sum(counts: Numbers, first: int, table: Numbers, worth: int, slots: int) -> int:
    """Return Σ count·worth over the slots of one outcome."""
    total: int = 0
    if slots == 5:  # lists of five are most common, and a loop would take longer than the sum
        total += counts[first] * table[worth]
        total += counts[first + 1] * table[worth + 1]
        total += counts[first + 2] * table[worth + 2]
        total += counts[first + 3] * table[worth + 3]
        total += counts[first + 4] * table[worth + 4]
        return total
    for slot in range(slots):
        total += counts[first + slot] * table[worth + slot]
    return total


def number(units: int) -> float:
    """Return units of 2⁻³⁰ as a plain number."""
    return units * UNIT


register(__name__)
