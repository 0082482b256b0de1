"""Sums over many items, compiled."""

from __future__ import annotations

from ebrank.evidence.sums import clicks_sum, exposure_sum, number, shown_sum, weighted_clicks_sum
from ebrank.kernels.compiled import kernel
from ebrank.kernels.pointers import pointer_to
from ebrank.typing import Floats, Ints, SmallInts


@kernel
def write_sums(
    counts: SmallInts,
    table: Ints,
    start: int,
    stop: int,
    shown: Floats,
    clicks: Floats,
    weighted_clicks: Floats,
    exposure: Floats,
) -> None:
    """Write n, c, C and E of items start..stop; counts of one item must be adjacent."""
    behaviors, slots = counts.shape[1] - 1, counts.shape[2]
    for i in range(start, stop):
        item, worth = pointer_to(counts, i), pointer_to(table, 0)
        shown[i] = shown_sum(item, slots, worth)
        exposure[i] = number(exposure_sum(item, slots, worth))
        clicks[i] = number(clicks_sum(item, slots, behaviors, worth))
        weighted_clicks[i] = number(weighted_clicks_sum(item, slots, behaviors, worth))


@kernel
def write_units(counts: SmallInts, table: Ints, weighted_clicks: Ints, exposure: Ints) -> None:
    """Write C and E of every item in units of 2⁻³⁰; counts of one item must be adjacent."""
    behaviors, slots, worth = counts.shape[1] - 1, counts.shape[2], pointer_to(table, 0)
    for i in range(len(counts)):
        item = pointer_to(counts, i)
        weighted_clicks[i] = weighted_clicks_sum(item, slots, behaviors, worth)
        exposure[i] = exposure_sum(item, slots, worth)
