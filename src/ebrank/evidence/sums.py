"""The weighted sums of one item's counts, as plain functions that kernels inline.

`counts` is an item's block of (1 + behaviors) × slots whole numbers, impressions first; `table` is
that of a `Valuation`. Both may be an array or, in compiled code, a pointer. Sums other than
`shown_sum` are in units of 2⁻³⁰.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ebrank.evidence.valuation import UNIT

Numbers: TypeAlias = Sequence[Any]


def shown_sum(counts: Numbers, slots: int, table: Numbers) -> int:
    """Return n, the impressions at slots that users examine."""
    total = 0
    for slot in range(slots):
        total += counts[slot] * table[slot]
    return total


def exposure_sum(counts: Numbers, slots: int, table: Numbers) -> int:
    """Return E = Σ p over impressions."""
    total = 0
    for slot in range(slots):
        total += counts[slot] * table[slots + slot]
    return total


def clicks_sum(counts: Numbers, slots: int, behaviors: int, table: Numbers) -> int:
    """Return c = Σ w over outcomes."""
    total = 0
    for place in range(slots, (1 + behaviors) * slots):
        total += counts[place] * table[slots + place]
    return total


def weighted_clicks_sum(counts: Numbers, slots: int, behaviors: int, table: Numbers) -> int:
    """Return C = Σ w/p over outcomes."""
    total = 0
    for place in range(slots, (1 + behaviors) * slots):
        total += counts[place] * table[(1 + behaviors) * slots + place]
    return total


def number(units: int) -> float:
    """Return units of 2⁻³⁰ as a plain number."""
    return units * UNIT
