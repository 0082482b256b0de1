"""What a log entry adds to the counts of its items: the only place where that is decided.

It is `BehaviorStats.record`, cut into the moments at which a service learns of its parts: a list is
shown now, what users do with it arrives later. Whole numbers add up in any order.

Callers know items by their names, their rows or their places; `keys` are what they know those by
that the entry names, in the order of `items_of`:

>>> entry = EventEntry("e", "r", "shoes", "a", "click", 3, 1, False, time=7.0, received=8.0)
>>> steps(entry, items_of(entry))
[('a', 1, 2, 1)]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress
from operator import not_
from typing import TypeVar

from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.slots import DEEPEST, slot_of
from ebrank.service.store.records import EventEntry, Operation, RankingEntry, Written

T = TypeVar("T")

IMPRESSION = "impression"

_SLOTS = tuple(slot_of(rank) for rank in range(1, DEEPEST + 1))


def steps(entry: Operation, keys: Sequence[T]) -> list[tuple[T, int, int, int]]:
    """Return what an entry adds: items, each with an outcome, a slot and an amount; slots rise."""
    if isinstance(entry, RankingEntry):
        if not entry.counted:
            return []
        slots = _slots(entry.offset, len(entry.items))
        placed: Iterable[tuple[T, int]] = zip(keys, slots, strict=False)
        if entry.seen:
            placed = compress(placed, map(not_, entry.seen))
        return [(key, SHOWN, slot, 1) for key, slot in placed]
    [key], slot = keys, slot_of(entry.rank)
    added = []
    if entry.shows:
        added.append((key, SHOWN, slot, 1))
    if entry.outcome > SHOWN:
        added.append((key, entry.outcome, slot, 1))
    if entry.replaces:
        added.append((key, entry.replaces, slot, -1))
    return added


def _slots(offset: int, length: int) -> Sequence[int]:
    """Return the slots of the ranks of a list."""
    if offset + length <= DEEPEST:
        return _SLOTS[offset : offset + length]
    return [slot_of(rank) for rank in range(offset + 1, offset + length + 1)]


def items_of(entry: Operation) -> tuple[str, ...]:
    """Return the items that an entry names, all of which its query must have."""
    return (entry.item,) if isinstance(entry, EventEntry) else entry.items + entry.would_rank


def shown(entry: Operation, keys: Sequence[T]) -> Sequence[T]:
    """Return the items that an entry shows: they were shown at its time."""
    if isinstance(entry, EventEntry):
        return keys if entry.shows else ()
    if not entry.counted:
        return ()
    listed = keys[: len(entry.items)]
    return list(compress(listed, map(not_, entry.seen))) if entry.seen else listed


def as_written(entry: Operation, written: Written) -> Operation:
    """Return an entry as it was logged."""
    counted = written.shows, written.outcome, written.replaces
    if isinstance(entry, RankingEntry) or counted == (entry.shows, entry.outcome, entry.replaces):
        return entry
    return replace(entry, shows=written.shows, outcome=written.outcome, replaces=written.replaces)


def time_of(entry: Operation) -> float:
    """Return when an entry was logged: times of a log never go back."""
    return entry.time if isinstance(entry, RankingEntry) else entry.received
