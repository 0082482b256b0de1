"""What a log entry adds to the counts of its items: the only place where that is decided.

It is `BehaviorStats.record`, split into the moments at which a service learns of its parts: a list
is shown now, what users do with it arrives later. Whole numbers add up in any order.

Callers know items by their names, their rows or their places; `keys` are these for the items that
the entry names, in the order of `items_of`:

>>> entry = EventEntry("e", "r", "shoes", "a", "click", 3, 1, False, time=7.0, received=8.0)
>>> steps(entry, items_of(entry))
[('a', 1, 2, 1)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from operator import not_
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.forgetting import forgotten, item_keys
from ebrank.evidence.slots import DEEPEST, SLOTS, slot_of
from ebrank.evidence.stats import COUNT
from ebrank.service.store.records import EventEntry, Operation, RankingEntry, Written

T = TypeVar("T")

IMPRESSION = "impression"
KEY_SEED = 0x45425246

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
    [key], [slot] = keys, _slots(entry.rank - 1, 1)
    added = []
    if entry.shows:
        added.append((key, SHOWN, slot, 1))
    if entry.replaces:
        added.append((key, entry.replaces, slot, -1))
    if entry.outcome > SHOWN:
        added.append((key, entry.outcome, slot, 1))
    return added


def possible(counts: Sequence[int], outcome: int, amount: int) -> bool:
    """Return whether a step can be taken from the counts of an item in its slot, by outcome.

    If not, the impression whose outcome it changes is forgotten, and the entry's other steps are
    left out too. In a store that forgets nothing, every step is possible.

    >>> possible([5, 2], outcome=1, amount=1), possible([5, 5], outcome=1, amount=1)
    (True, False)
    """
    if outcome == SHOWN:
        return True
    return counts[outcome] > 0 if amount < 0 else sum(counts[SHOWN + 1 :]) < counts[SHOWN]


class ItemCounts:
    """What users did with one item, by outcome and slot, as far as it is not forgotten.

    Attributes:
        counts: those that are, or once were, above 0.
        epoch: of the counts.
    """

    __slots__ = ("counts", "epoch")

    def __init__(self, counts: Mapping[tuple[int, int], int] | None = None, epoch: int = 0) -> None:
        self.counts = dict(counts or {})
        self.epoch = epoch

    def at(self, epoch: int, query: str, place: int) -> ItemCounts:
        """Return the counts of the item at a place of a query in a later epoch.

        In an earlier one they stay as they are.
        """
        if epoch <= self.epoch:
            return self
        if not any(self.counts.values()):
            return ItemCounts(self.counts, epoch)
        block = np.zeros((1, 1 + max(outcome for outcome, _ in self.counts), SLOTS), COUNT)
        for (outcome, slot), count in self.counts.items():
            block[0, outcome, slot] = count
        faded = forgotten(block, keys_of(query, [place]), self.epoch, epoch)[0]
        return ItemCounts(
            {(outcome, slot): int(faded[outcome, slot]) for outcome, slot in self.counts}, epoch
        )

    def add(self, outcome: int, slot: int, amount: int) -> bool:
        """Take a step, and return whether it was possible."""
        counts = self.counts
        if self.epoch and outcome != SHOWN:
            outcomes = 1 + max((one for one, _ in counts), default=SHOWN)
            column = [counts.get((one, slot), 0) for one in range(max(outcomes, outcome + 1))]
            if not possible(column, outcome, amount):
                return False
        counts[outcome, slot] = counts.get((outcome, slot), 0) + amount
        return True


class Fold:
    """Adds entries up, in the order of the log: the counters of all items that they touch.

    >>> fold = Fold(lambda query, item: ItemCounts(), lambda query, item: 0)
    >>> fold.add(RankingEntry("r", "shoes", 7.0, 0, ("a", "b")))
    >>> {item: one.counts for (_, item), one in fold.items.items()}
    {'a': {(0, 0): 1}, 'b': {(0, 1): 1}}
    """

    def __init__(
        self, begin: Callable[[str, str], ItemCounts], place: Callable[[str, str], int]
    ) -> None:
        """Take functions that return an item's counters before the first entry, and its place."""
        self._begin = begin
        self._place = place
        self.items: dict[tuple[str, str], ItemCounts] = {}

    def add(self, entry: Operation) -> None:
        """Add an entry."""
        query = entry.query
        for item, outcome, slot, amount in steps(entry, items_of(entry)):
            known = self.items.get((query, item)) or self._begin(query, item)
            if entry.epoch > known.epoch:
                known = known.at(entry.epoch, query, self._place(query, item))
            self.items[query, item] = known
            if not known.add(outcome, slot, amount):
                break


Placed: TypeAlias = tuple[int, Sequence[int], Operation]
"""An entry with its query's number, and the places of all items it names."""
Place: TypeAlias = tuple[int, int]
"""The place of an item: its query's number, and its place there."""


def places_of(entries: Iterable[Placed]) -> dict[tuple[str, str], Place]:
    """Return the places of the items that entries name, by query and name."""
    return {
        (entry.query, name): (number, place)
        for number, where, entry in entries
        for name, place in zip(items_of(entry), where, strict=True)
    }


def changed_counts(
    entries: Iterable[Placed],
    places: Mapping[tuple[str, str], Place],
    before: Mapping[Place, ItemCounts],
) -> list[tuple[int, int, int, int, int, int]]:
    """Return the rows that entries change: query, place, outcome, slot, count and epoch."""
    nothing = ItemCounts()

    def begin(query: str, item: str) -> ItemCounts:
        known = before.get(places[query, item], nothing)
        return ItemCounts(known.counts, known.epoch)

    fold = Fold(begin, lambda query, item: places[query, item][1])
    for _, _, entry in entries:
        fold.add(entry)
    changed = []
    for name, item in fold.items.items():
        old = before.get(places[name], nothing)
        for (outcome, slot), count in item.counts.items():
            if item.epoch != old.epoch or old.counts.get((outcome, slot)) != count:
                changed.append((*places[name], outcome, slot, count, item.epoch))
    return changed


def keys_of(query: str, places: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Return the keys of the draws for items: by their places, because names may be deleted."""
    name = query.encode("utf-8", "surrogatepass")
    return item_keys(xxhash.xxh3_64_intdigest(name, KEY_SEED), places)


def _slots(offset: int, length: int) -> Sequence[int]:
    """Return the slots of so many ranks, below those of an offset."""
    if 0 <= offset <= DEEPEST - length:
        return _SLOTS[offset : offset + length]
    return [slot_of(rank) for rank in range(offset + 1, offset + length + 1)]


def items_of(entry: Operation) -> tuple[str, ...]:
    """Return the items that an entry names, all of which its query must have."""
    return (entry.item,) if isinstance(entry, EventEntry) else entry.items + entry.would_rank


def shown(entry: Operation, keys: Sequence[T]) -> Sequence[T]:
    """Return the items that an entry shows, at its time."""
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
