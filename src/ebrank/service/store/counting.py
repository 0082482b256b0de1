"""The semantics of log entries: which events count, what they add to counters, their rows.

Stores, replay and roll-up all use it. `decide` finds duplicates and replaced outcomes,
given earlier events; `steps` lists the increments of an entry. It is `BehaviorStats.record`, split
into the moments at which a service learns of its parts: a list is shown now, what users do with it
arrives later. Whole numbers add up in any order.

All else that counts (clicks, their worth, lists of an arm) reads the `Change` of an entry, and
decides nothing.

Callers know items by their names, their rows or their places; `keys` are these for the items that
the entry names, in the order of `items_of`:

>>> entry = EventEntry("e", "r", "shoes", "a", "click", 3, 1, False, time=7.0, received=8.0)
>>> steps(entry, items_of(entry))
[('a', 1, 2, 1)]
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from operator import attrgetter, not_
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

from ebrank.evidence.behaviors import NEGATIVE, SHOWN
from ebrank.evidence.forgetting import forgotten, item_keys
from ebrank.evidence.slots import DEEPEST, SLOTS, slot_of
from ebrank.evidence.stats import COUNT
from ebrank.service.store.driver import StoreError, UnknownQuery
from ebrank.service.store.records import EventEntry, Operation, RankingEntry, Written
from ebrank.service.store.tables import EVENTS, RANKINGS, Existing, Row, StoreTable, prefixed
from ebrank.typing import SmallInts

T = TypeVar("T")

IMPRESSION = "impression"
ACCEPTED = Written("accepted")
ID_SEEN = "event_id was seen before"
ALREADY_COUNTED = "an event of this type was counted for this item of this ranking"
KEY_SEED = 0x45425246

_SLOTS = tuple(slot_of(rank) for rank in range(1, DEEPEST + 1))


def steps(entry: Operation, keys: Sequence[T]) -> list[tuple[T, int, int, int]]:
    """Return the counter increments of an entry: item, outcome, slot, amount; slots ascend."""
    if isinstance(entry, RankingEntry):
        if not entry.counted:
            return []
        placed = [*zip(keys, _slots(entry.offset, len(entry.items)), strict=True)]
        return [(key, SHOWN, slot, 1) for key, slot in fresh(entry, placed)]
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


Placed: TypeAlias = tuple[int, Sequence[int], Operation]
"""An entry with its query's number, and the places of all items it names."""
Place: TypeAlias = tuple[int, int]
"""The place of an item: its query's number, and its place there."""
CountRow: TypeAlias = tuple[int, int, int, int, int, int]
"""A query's number, a place there, an outcome, a slot, a count and its epoch."""


class Tally:
    """Adds entries up, in the order of the log, to the counts of their items before.

    >>> tally = Tally()
    >>> tally.add((7, (0, 1), RankingEntry("r", "shoes", 7.0, 0, ("a", "b"))))
    >>> tally.rows()
    [(7, 0, 0, 0, 1, 0), (7, 1, 0, 1, 1, 0)]

    Attributes:
        items: of each item that has some, by its place: the counts by outcome and slot that are, or
            once were, above 0.
    """

    def __init__(self, before: Iterable[CountRow] = ()) -> None:
        self.items: dict[Place, dict[tuple[int, int], int]] = {}
        self._epochs: dict[Place, int] = {}
        for query, place, outcome, slot, count, epoch in before:
            self.items.setdefault((query, place), {})[outcome, slot] = count
            self._epochs[query, place] = epoch

    def add(self, placed: Placed) -> None:
        """Add an entry."""
        query, places, entry = placed
        for place, outcome, slot, amount in steps(entry, places):
            counts = self.reached((query, place), entry.query, entry.epoch)
            # In epoch 0 nothing was forgotten yet, and every step is possible.
            if outcome != SHOWN and self._epochs[query, place]:
                outcomes = 1 + max([outcome, *(number for number, _ in counts)])
                column = [counts.get((number, slot), 0) for number in range(outcomes)]
                if not possible(column, outcome, amount):
                    break
            counts[outcome, slot] = counts.get((outcome, slot), 0) + amount

    def reached(self, place: Place, query: str, epoch: int) -> dict[tuple[int, int], int]:
        """Return the counts of an item, given its query's name, once they fade up to an epoch.

        If they are in a later one, they stay as they are.
        """
        counts, before = self.items.setdefault(place, {}), self._epochs.setdefault(place, epoch)
        if epoch > before:
            self._epochs[place] = epoch
            if any(counts.values()):
                block = np.zeros((1, 1 + max(outcome for outcome, _ in counts), SLOTS), COUNT)
                for key, count in counts.items():
                    block[0][key] = count
                left = faded(block, query, before, epoch, places=place[1:])[0]
                counts.update([(key, int(left[key])) for key in counts])
        return counts

    def rows(self) -> list[CountRow]:
        """Return the counts of all items."""
        return [
            (*place, *counted, count, self._epochs[place])
            for place, counts in self.items.items()
            for counted, count in counts.items()
        ]


class Earlier(NamedTuple):
    """The fields of a logged event that decide on later ones."""

    query: int
    event_id: str
    ranking_id: str
    place: int
    type: str
    outcome: int
    shows: bool


def decide(entries: Sequence[Placed], earlier: Iterable[Earlier]) -> list[Written]:
    """Decide on entries, in order, given the earlier events they may duplicate.

    An event is a duplicate if its id was seen before for its query, or if an event of its type was
    counted for the same item of the same list. It shows its item if no event before it did. It has
    an outcome if it is better than those before it, of which none was negative, or if it is the
    first that is negative; then it replaces the best of them.
    """
    ids: set[tuple[int, str]] = set()
    impressions: dict[tuple[int, str, int], list[tuple[str, int, bool]]] = {}
    for query, event_id, ranking_id, place, kind, outcome, shows in earlier:
        ids.add((query, event_id))
        impressions.setdefault((query, ranking_id, place), []).append((kind, outcome, shows))
    results = []
    for query, places, entry in entries:
        if isinstance(entry, RankingEntry):
            results.append(ACCEPTED)
            continue
        name = query, entry.event_id
        before = impressions.setdefault((query, entry.ranking_id, places[0]), [])
        types, outcomes, showing = zip(*before, strict=True) if before else ((), (), ())
        if name in ids or entry.type in types:
            results.append(Written("duplicate", ID_SEEN if name in ids else ALREADY_COUNTED))
            continue
        shows, outcome, replaces = entry.shows and not any(showing), entry.outcome, entry.replaces
        best = max(SHOWN, *outcomes) if outcomes else SHOWN
        if NEGATIVE not in outcomes and (outcome > best or outcome == NEGATIVE):
            replaces = replaces or best
        else:
            outcome = 0
        before.append((entry.type, outcome, shows))
        ids.add(name)
        results.append(Written("accepted", "", shows, outcome, replaces))
    return results


def logged(entries: Iterable[Placed], written: Iterable[Written]) -> list[Placed]:
    """Return the entries that are no duplicates, as they are logged."""
    return [
        (query, places, as_written(entry, result))
        for (query, places, entry), result in zip(entries, written, strict=True)
        if result.status == "accepted"
    ]


def sums(entries: Iterable[Placed], epoch: int = 0) -> list[CountRow]:
    """Sum the increments of entries; return them as rows of an epoch."""
    counts: dict[tuple[int, int, int, int], int] = {}
    for query, places, entry in entries:
        for place, outcome, slot, amount in steps(entry, places):
            key = (query, place, outcome, slot)
            counts[key] = counts.get(key, 0) + amount
    return [(*key, amount, epoch) for key, amount in counts.items() if amount]


def first_shown(entries: Iterable[Placed]) -> list[tuple[int, int, float]]:
    """Return the items that entries may show for the first time: queries, places and times."""
    firsts: dict[Place, float] = {}
    for query, places, entry in entries:
        unseen = [True] * len(places) if entry.hint is None else entry.hint.unseen
        if True in unseen:
            for place, new in shown(entry, tuple(zip(places, unseen, strict=True))):
                if new:
                    firsts.setdefault((query, place), time_of(entry))
    return [(*key, time) for key, time in firsts.items()]


def latest_epoch(entries: Iterable[Placed]) -> int:
    """Return the latest epoch of entries, 0 if nothing is forgotten."""
    return max([entry.epoch for _, _, entry in entries], default=0)


def counted(
    entries: Sequence[Placed], epoch: int, before: Sequence[CountRow]
) -> tuple[list[CountRow], Existing]:
    """Return the rows to insert into a table of counts, and what to do about those there.

    Args:
        entries: as they are logged.
        epoch: the latest of theirs.
        before: the counts of all items that they name, if there is an epoch.
    """
    # An event may change an outcome that was forgotten, so it must see the counts; lists only add,
    # as long as all counts are in their epoch.
    adds = all(each.epoch == epoch and isinstance(each, RankingEntry) for *_, each in entries)
    if not epoch or (adds and all(row[-1] == epoch for row in before)):
        return sums(entries, epoch), "add"
    old: list[Any] = [tuple(row) for row in before]
    tally = Tally(old)
    for placed in entries:
        tally.add(placed)
    # In a new epoch all rows of an item are written, so that they share one epoch.
    return sorted({*tally.rows()} - {*old}), "replace"


def named_places(entries: Iterable[Placed]) -> set[Place]:
    """Return the places of all items that entries name."""
    return {(number, place) for number, places, _ in entries for place in places}


def faded(
    counts: SmallInts,
    query: str,
    epochs: int | npt.NDArray[np.int64],
    until: int,
    places: Sequence[int] | None = None,
) -> SmallInts:
    """Return the counts of items of a query as they are in a later epoch.

    Nothing else fades counts, so memory, stores, replay and training have the same bits. It must
    happen before anything of a later epoch is added. Draws belong to places: names may be deleted.

    Args:
        counts: of the items in these places; by default, of all.
        query: its name.
        epochs: the epoch of all counts, or of each item's.
        until: the epoch to bring them to.
        places: of the items in the query.
    """
    name = query.encode("utf-8", "surrogatepass")
    where = range(len(counts)) if places is None else places
    keys = item_keys(xxhash.xxh3_64_intdigest(name, KEY_SEED), where)
    return forgotten(counts, keys, epochs, until)


def _slots(offset: int, length: int) -> Sequence[int]:
    """Return the slots of the next `length` ranks after an offset."""
    if 0 <= offset <= DEEPEST - length:
        return _SLOTS[offset : offset + length]
    return [slot_of(rank) for rank in range(offset + 1, offset + length + 1)]


def items_of(entry: Operation) -> tuple[str, ...]:
    """Return the items that an entry names, all of which its query must have."""
    return (entry.item,) if isinstance(entry, EventEntry) else entry.items


def shown(entry: Operation, keys: Sequence[T]) -> Sequence[T]:
    """Return the items that an entry shows, at its time."""
    if isinstance(entry, EventEntry):
        return keys if entry.shows else ()
    return fresh(entry, keys) if entry.counted else ()


def fresh(entry: RankingEntry, keys: Sequence[T]) -> Sequence[T]:
    """Return those of a list's ranks whose impressions count here, not by a list before it."""
    return list(compress(keys, map(not_, entry.seen))) if entry.seen else keys


def clicks_of(entry: EventEntry) -> int:
    """Return how many more impressions have an outcome after an event: -1 if it takes one back."""
    return (entry.outcome > SHOWN) - (entry.replaces > SHOWN)


class Change(NamedTuple):
    """What an entry adds, to whatever is counted.

    Attributes:
        entry: as it is in the log: who asked, for which query, in which arm.
        time: when it was logged.
        view: the list it counts for; pages and refreshes count for the first of their window.
        lists: 1 if it is the first list of its window, otherwise 0.
        rows: of the items that it names, in their query.
        steps: of counts: row, outcome, slot and amount.
        shown: rows of the items that it shows.
        ranks: at which it shows them.
        clicks: how many more impressions have an outcome; -1 if it takes one back.
        worth: how much more these outcomes are worth.
    """

    entry: Operation
    time: float
    view: str
    lists: int
    rows: Sequence[int]
    steps: Sequence[tuple[int, int, int, int]]
    shown: Sequence[int]
    ranks: Sequence[int]
    clicks: int = 0
    worth: float = 0.0


def change_of(
    entry: Operation, written: Written, rows: Sequence[int], weights: Sequence[float]
) -> Change:
    """Return what an entry adds, given what its store decided, and what each behavior is worth.

    >>> click = EventEntry("e", "r", "shoes", "a", "click", 3, 1, False, time=7.0, received=8.0)
    >>> added = change_of(click, Written("accepted", outcome=2, replaces=1), [5], [0.25, 1.0])
    >>> added.view, added.steps, added.clicks, added.worth
    ('r', [(5, 1, 2, -1), (5, 2, 2, 1)], 0, 0.75)
    """
    entry = as_written(entry, written)
    added = steps(entry, rows)
    if isinstance(entry, RankingEntry):
        view, first = entry.continues or entry.id, entry.offset + 1
        items, ranks = shown(entry, rows), shown(entry, range(first, first + len(rows)))
        return Change(entry, entry.time, view, int(view == entry.id), rows, added, items, ranks)
    worths = (0.0, *weights)
    worth = worths[max(entry.outcome, SHOWN)] - worths[max(entry.replaces, SHOWN)]
    view, time, clicks = entry.ranking_id, entry.received, clicks_of(entry)
    items, ranks = (rows, [entry.rank]) if entry.shows else ((), ())
    return Change(entry, time, view, 0, rows, added, items, ranks, clicks, worth)


def as_written(entry: Operation, written: Written) -> Operation:
    """Return an entry as it was logged."""
    if isinstance(entry, RankingEntry):
        return entry
    _, _, shows, outcome, replaces = written
    if shows == entry.shows and outcome == entry.outcome and replaces == entry.replaces:
        return entry
    return replace(entry, shows=shows, outcome=outcome, replaces=replaces)


def time_of(entry: Operation) -> float:
    """Return when an entry was logged: times of a log never go back."""
    return entry.time if isinstance(entry, RankingEntry) else entry.received


# --- operations, and their rows ------------------------------------------------------------------


class LogBatch:
    """Operations on their way into the log.

    Attributes:
        times: the queries that they name, with the latest time of each.
        lives: the lives of queries that hints belong to.
        names: queries and items whose places no hint says, once each.

    Raises:
        ValueError: if a hint is of other items than its entry.
        UnknownQuery: if two hints belong to different lives of a query.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        times: dict[str, float] = {}
        lives: dict[str, int] = {}
        names: dict[tuple[str, str], None] = {}
        self.operations, self.times, self.lives, self.names = operations, times, lives, names
        for entry in operations:
            query, hint, time = entry.query, entry.hint, time_of(entry)
            if time > times.setdefault(query, 0.0):
                times[query] = time
            if hint is None:
                names.update(dict.fromkeys((query, name) for name in items_of(entry)))
            elif len(hint.places) != len(items_of(entry)):
                raise ValueError(f"a hint of {len(hint.places)} places for other items")
            elif lives.setdefault(query, hint.life) != hint.life:
                raise other_life(query)

    def placed(
        self, numbers: Mapping[str, int], places: Mapping[tuple[int, str], int]
    ) -> list[Placed]:
        """Return the operations with the places of their items, from hints or as looked up.

        Args:
            numbers: of queries.
            places: of items by their names, and the numbers of their queries.

        Raises:
            StoreError: if an item was not found.
        """
        if len(places) < len(self.names):
            raise StoreError("a query lacks an item of its list; nothing was stored")
        placed: list[Placed] = []
        for entry in self.operations:
            number, hint = numbers[entry.query], entry.hint
            if hint is None:
                placed.append((number, [places[number, name] for name in items_of(entry)], entry))
            else:
                placed.append((number, hint.places, entry))
        return placed


def other_life(query: str) -> UnknownQuery:
    """Return the error for a hint that belongs to an earlier life of a query."""
    return UnknownQuery(f"query {query!r} was deleted, and given again")


def event_keys(entries: Iterable[Placed]) -> list[tuple[int, str, str, int]]:
    """Return the keys by which to look up earlier events: the id, or list and place."""
    return [
        (query, entry.event_id, entry.ranking_id, places[0])
        for query, places, entry in entries
        if isinstance(entry, EventEntry)
    ]


def _text(numbers: Iterable[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


def listed(numbers: str | None) -> Sequence[int]:
    """Return the numbers of a list, none if there is no list."""
    return [] if numbers is None else json.loads(numbers)


_Convert: TypeAlias = Callable[[Any], object]
_WRITE: Mapping[str, _Convert] = {
    "reals": lambda numbers: struct.pack(f"<{len(numbers)}d", *numbers),
    "bools": bytes,
    "numbers": _text,
}
_READ: Mapping[str, _Convert] = {
    "reals": lambda data: struct.unpack(f"<{len(data) // 8}d", data) if data else (),
    "bools": lambda data: tuple(map(bool, data)),
    "numbers": lambda text: tuple(listed(text)),
    "bool": bool,
}
"""What turns a field of an entry into the value of a column, and back, by types of columns."""


class Codec:
    """How entries of a kind become rows, and back, as the kinds of its columns say.

    Attributes:
        table: of the rows.
        columns: those of a row, in its order: `seq`, `query`, places, then fields of entries.
        selected: the columns, and the query's name, as SQL.
    """

    def __init__(self, table: StoreTable, *places: str) -> None:
        given = ("seq", "query", *places)
        kinds = {column.name: column for column in table.columns}
        self.table = table
        self.columns = given + tuple(name for name in kinds if name not in given)
        source = f"{table.name} AS t JOIN queries AS q ON number = t.query"
        self.selected = f"SELECT {prefixed('t', self.columns)}, q.name FROM {source}"
        self._kinds = [kinds[name] for name in self.columns]
        self._given, self._fields = len(given), self.columns[len(given) :]
        self._values = attrgetter(*self._fields)
        own = [(at, each.kind, each) for at, each in enumerate(self._kinds[len(given) :])]
        self._writes = [(at, _WRITE[kind], each.null) for at, kind, each in own if kind in _WRITE]
        self._reads = [(at, _READ[kind]) for at, kind, _ in own if kind in _READ]

    def row(self, seq: int, query: int, places: Sequence[object], entry: Operation) -> Row:
        """Return the row of an entry, given its places as the columns have them."""
        values = list(self._values(entry))
        for at, write, null in self._writes:
            values[at] = None if null and not values[at] else write(values[at])
        return (seq, query, *places, *values)

    def fields(self, row: Row) -> dict[str, Any]:
        """Return the fields of the entry of a row of `selected`, besides query and items.

        Raises:
            ValueError: if a value is of another type than its column, as SQLite allows.
        """
        for column, value in zip(self._kinds, row, strict=False):
            if not column.holds(value):
                raise ValueError("invalid log row")
        values = list(row[self._given : -1])
        for at, read in self._reads:
            values[at] = read(values[at])
        return dict(zip(self._fields, values, strict=True))


CODECS = RANKING, EVENT = Codec(RANKINGS, "items"), Codec(EVENTS, "place")


def places_of(codec: Codec, row: Row) -> Sequence[int]:
    """Return the places of all items that a row names, in the order of `items_of`."""
    return [row[2]] if codec is EVENT else listed(row[2])


def entry_of(codec: Codec, row: Row, names: Mapping[int, str]) -> Operation:
    """Return the entry of a row of `codec.selected`, given its items' names by their places."""
    fields, query = codec.fields(row), row[-1]
    if codec is EVENT:
        return EventEntry(query=query, item=names[row[2]], **fields)
    items = tuple(names[place] for place in listed(row[2]))
    return RankingEntry(query=query, items=items, **fields)


def rows_of(entries: Sequence[Placed], begin: int) -> dict[Codec, list[Row]]:
    """Return the rows of entries, of which there are some, numbered in order from `begin`."""
    rows: dict[Codec, list[Row]] = {}
    for seq, (query, places, entry) in enumerate(entries, begin):
        if isinstance(entry, EventEntry):
            rows.setdefault(EVENT, []).append(EVENT.row(seq, query, places[:1], entry))
        else:
            row = RANKING.row(seq, query, [_text(places)], entry)
            rows.setdefault(RANKING, []).append(row)
    return rows
