"""Retraction: lists and events that were counted count no longer.

Nothing leaves the log. A retracted entry is marked, and adds nothing to counters;
so an event that is sent again is still a duplicate, and one that cites a retracted list counts no
more than the list does. The counters of a query are then added up again, from its snapshot and its
log: by the same steps as in a replay, also where counts fade.

A query that changes begins another life (see `LIFE`). What servers remember of its lists, and of
what users have seen, belongs to the old one, and is read again before anything is written.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ebrank.evidence.behaviors import SHOWN
from ebrank.service.store import counting
from ebrank.service.store.counting import Placed
from ebrank.service.store.driver import Connection, Driver
from ebrank.service.store.log import BEGINNING, END, StoredLog, page
from ebrank.service.store.records import LIFE, Operation, RankingEntry, Wanted
from ebrank.service.store.tables import COUNTS, EVIDENCE, QUERIES, SNAPSHOT

MOST_HELD = 200_000
"""Entries of the log that are held in memory; for more, the log is read again."""
LATEST = 2**63 - 1
"""Follows every number of the log."""
AT_ONCE = 5
"""Queries that change in one transaction, while others wait."""

_UNCOUNT_LIST = "UPDATE rankings SET retracted = true, counted = false WHERE seq = ?1"
_UNCOUNT_EVENT = """UPDATE events SET retracted = true, outcome = 0, shows = false, replaces = 0
    WHERE seq = ?1"""
_BEGIN = "UPDATE state SET lives = lives + 1 RETURNING lives, rolled_up"
_RENEW = "UPDATE queries SET version = ?2 WHERE number = ?1"  # not 1: it is not new
_PROVE = """UPDATE deletions SET queries = queries + 1, rankings = rankings + ?2,
    events = events + ?3 WHERE number = ?1"""
_FIRST_SHOWN = "UPDATE items SET first_shown = ?3 WHERE query = ?1 AND place = ?2"


class Retraction:
    """Says of each entry of a log, in order, whether it is retracted.

    A list is, if it is wanted; so is a later one of the same view, whose impressions may count for
    it. An event is, if the impression it is about is, or an earlier event about it, on which its
    outcome may build; and, if a time was given, if it was received then.

    >>> retraction = Retraction(Wanted(user="ann"))
    >>> retraction.takes(RankingEntry("r", "tea", 7.0, 0, ("a",), user="ann"))
    True
    >>> retraction.takes(RankingEntry("s", "tea", 8.0, 0, ("a",), user="bob"))
    False
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._timed = wanted.since is not None or wanted.until < math.inf
        self._all = wanted.user is wanted.ranking is wanted.token is None
        self._views: set[str] = set()  # of lists that are wanted, at any time
        self._retracted: set[str] = set()  # views from a list on
        self._items: dict[str, set[str]] = {}  # of these views, or with a retracted event

    def takes(self, entry: Operation) -> bool:
        """Return whether the next entry is retracted."""
        wanted = self._wanted
        if wanted.query not in (None, entry.query):
            return False
        in_time = (wanted.since or 0.0) <= counting.time_of(entry) < wanted.until
        if isinstance(entry, RankingEntry):
            view = entry.continues or entry.id
            theirs = (
                wanted.user in (None, entry.user)
                and wanted.ranking in (None, entry.id)
                and wanted.token in (None, entry.token)
            )
            if theirs and not self._all:
                self._views.add(view)
            if not (view in self._retracted or (theirs and in_time)):
                return False
            self._retracted.add(view)
            self._items.setdefault(view, set()).update(counting.fresh(entry, entry.items))
            return True
        view = entry.ranking_id
        theirs = self._all or view in self._views
        if not (entry.item in self._items.get(view, ()) or (theirs and in_time and self._timed)):
            return False
        self._items.setdefault(view, set()).add(entry.item)
        return True


@dataclass
class Chosen:
    """What a retraction would take back.

    Attributes:
        queries: the numbers of queries, with how many entries of each the log holds.
        rankings: lists that count, or whose events do.
        events: events that are not retracted yet.
        impressions: how often an item was shown.
        outcomes: what users did with them.
        log_begins: the time of the earliest entry, None if there is none.
        rolled_up: impressions that were counted before the log begins, if some may be wanted; whose
            they were is not known any more, and they cannot be retracted.
    """

    queries: dict[int, int] = field(default_factory=dict)
    rankings: int = 0
    events: int = 0
    impressions: int = 0
    outcomes: int = 0
    log_begins: float | None = None
    rolled_up: int = 0


async def chosen(driver: Driver, wanted: Wanted) -> Chosen:
    """Return what a retraction would take back, without what is retracted already."""
    found, retraction, lengths = Chosen(), Retraction(wanted), dict[int, int]()
    async for _, (query, _, entry) in StoredLog(driver).numbered():
        lengths[query] = lengths.get(query, 0) + 1
        if not retraction.takes(entry) or entry.retracted:
            continue
        found.queries[query] = 0
        if isinstance(entry, RankingEntry):
            found.rankings += 1
        else:
            found.events += 1
        for _, outcome, _, amount in counting.steps(entry, counting.items_of(entry)):
            if outcome == SHOWN:
                found.impressions += amount
            else:
                found.outcomes += amount
    found.queries = {query: lengths[query] for query in found.queries}
    sql = "SELECT coalesce(sum(count), 0) FROM snapshot JOIN queries ON query = number"
    async with driver.read() as connection:
        [(found.log_begins,)] = await connection.fetch(BEGINNING, -1)
        if wanted.ranking is None and (wanted.since or 0.0) < (found.log_begins or math.inf):
            name = wanted.query or ""
            sql = f"{sql} WHERE outcome = {SHOWN} AND (?1 = '' OR name = ?1)"
            [(rolled_up,)] = await connection.fetch(sql, name)
            found.rolled_up = int(rolled_up)
    return found


async def retracted(
    driver: Driver, wanted: Wanted, queries: Mapping[int, int], proof: int
) -> AsyncIterator[list[str]]:
    """Retract what is wanted of some queries, or of a part of them if their log is long.

    Yield the names of queries that have changed, after each transaction. It ends early if the log
    is rolled up meanwhile: what was read of it is then out of date. So is what was read of a query
    that another retraction has changed since; such a query is left out.
    """
    held: dict[int, list[tuple[int, Placed]]] = {}
    room = MOST_HELD
    for query, length in queries.items():
        if not held or length <= room:
            held[query] = []
            room -= length
    async with driver.read() as connection:
        [(before,)] = await connection.fetch("SELECT rolled_up FROM state")
        [(end,)] = await connection.fetch(END)
        lived = {number: life for number, _, life in await _lives(connection, list(held))}
    async for seq, placed in StoredLog(driver).numbered():
        if placed[0] in held:
            held[placed[0]].append((seq, placed))
    numbered = list(held)
    for begin in range(0, len(numbered), AT_ONCE):
        numbers = numbered[begin : begin + AT_ONCE]
        async with driver.chore() as connection:
            [(lives, rolled_up)] = await connection.fetch(_BEGIN)
            if rolled_up != before:
                return
            await connection.lock(numbers)
            now = await _lives(connection, numbers)
            names = {number: name for number, name, life in now if life == lived.get(number)}
            portion = {number: held[number] for number in names}
            last = {number: log[-1][0] if log else -1 for number, log in portion.items()}
            # In a shared store, entries of other queries may have come later with lower numbers.
            after = min(last.values(), default=end) if driver.shared else end
            for seq, placed in (await page(connection, after, LATEST, LATEST))[0]:
                if seq > last.get(placed[0], math.inf):
                    portion[placed[0]].append((seq, placed))
            for number, log in portion.items():
                counts = await _retract(connection, wanted, number, log)
                await connection.execute(_RENEW, number, lives * LIFE + 2)
                await connection.execute(_PROVE, proof, *counts)
        yield list(names.values())


async def _lives(connection: Connection, numbers: Sequence[int]) -> list[tuple[int, str, int]]:
    """Return the numbers, names and lives of those of some queries that are there."""
    keys = [(number,) for number in numbers]
    columns = ("number", "name", "version")
    rows = await connection.matching(QUERIES, columns, ("number",), keys)
    return [(number, name, version // LIFE) for number, name, version in rows]


async def _retract(
    connection: Connection, wanted: Wanted, query: int, log: Sequence[tuple[int, Placed]]
) -> tuple[int, int]:
    """Retract what is wanted of a query, given all of its log; return how many lists and events."""
    retraction, kept, gone = Retraction(wanted), list[Placed](), list[tuple[int, Placed]]()
    for seq, placed in log:
        if not retraction.takes(placed[2]):
            kept.append(placed)
        elif not placed[2].retracted:
            gone.append((seq, placed))
    lists = [(seq,) for seq, (_, _, entry) in gone if isinstance(entry, RankingEntry)]
    events = [(seq,) for seq, (_, _, entry) in gone if not isinstance(entry, RankingEntry)]
    await connection.many(_UNCOUNT_LIST, lists)
    await connection.many(_UNCOUNT_EVENT, events)
    snapshot: Any = await connection.matching(SNAPSHOT, COUNTS, ("query",), [(query,)])
    tally = counting.Tally(snapshot)
    for placed in kept:
        tally.add(placed)
    await connection.execute("DELETE FROM evidence WHERE query = ?1", query)
    await connection.insert(EVIDENCE, tally.rows())
    first: dict[int, float] = {}
    for _, places, entry in kept:
        for place in counting.shown(entry, places):
            first.setdefault(place, counting.time_of(entry))
    before = {place for _, place, outcome, *_ in snapshot if outcome == SHOWN}
    lost = {place for _, (_, places, entry) in gone for place in counting.shown(entry, places)}
    times = [(query, place, first.get(place)) for place in sorted(lost - before)]
    await connection.many(_FIRST_SHOWN, times)
    return len(lists), len(events)
