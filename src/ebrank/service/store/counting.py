"""What a log entry adds to the counts of its items: the only place where that is decided.

It is `BehaviorStats.record`, cut into the moments at which a service learns of its parts: a list is
shown now, what users do with it arrives later. Whole numbers add up in any order.

>>> entry = EventEntry("e", "r", "shoes", "a", "click", 3, 1, False, time=7.0, received=8.0)
>>> steps(entry)
[Step(item='a', outcome=1, slot=2, amount=1)]
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.slots import slot_of
from ebrank.service.store.records import EventEntry, Operation, RankingEntry, Written

IMPRESSION = "impression"


class Step(NamedTuple):
    """What is added to a count of an item."""

    item: str
    outcome: int
    slot: int
    amount: int


def steps(entry: Operation) -> list[Step]:
    """Return what an entry adds."""
    if isinstance(entry, RankingEntry):
        if not entry.counted:
            return []
        return [Step(item, SHOWN, slot_of(rank), 1) for rank, item in enumerate(entry.items, 1)]
    slot, added = slot_of(entry.rank), []
    if entry.shows:
        added.append(Step(entry.item, SHOWN, slot, 1))
    if entry.outcome:
        added.append(Step(entry.item, entry.outcome, slot, 1))
    if entry.replaces:
        added.append(Step(entry.item, entry.replaces, slot, -1))
    return added


def items_of(entry: Operation) -> tuple[str, ...]:
    """Return the items that an entry names, all of which its query must have."""
    return (entry.item,) if isinstance(entry, EventEntry) else entry.items + entry.would_rank


def shown_items(entry: Operation) -> tuple[str, ...]:
    """Return the items that an entry shows, if it `shows` any."""
    return (entry.item,) if isinstance(entry, EventEntry) else entry.items


def shows(entry: Operation) -> bool:
    """Return whether an entry shows its items: then they were shown at its time."""
    return entry.counted if isinstance(entry, RankingEntry) else entry.shows


def as_written(entry: Operation, written: Written) -> Operation:
    """Return an entry as it was logged."""
    counted = written.shows, written.outcome, written.replaces
    if isinstance(entry, RankingEntry) or counted == (entry.shows, entry.outcome, entry.replaces):
        return entry
    return replace(entry, shows=written.shows, outcome=written.outcome, replaces=written.replaces)


def time_of(entry: Operation) -> float:
    """Return when an entry was logged: times of a log never go back."""
    return entry.time if isinstance(entry, RankingEntry) else entry.received
