"""The log by SQL: written with its counters by one call, and read back in its order.

Rows name items by their places in their query. Entries of a query are in the order in which they
were counted: a writer holds its row. Entries of different queries that were written at the same
time are in any order.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import asyncpg

from ebrank.service.store.base import ANOTHER_EPOCH, Remembered, StoreError, UnknownQuery
from ebrank.service.store.counting import Placed, as_written, items_of, shown, steps, time_of
from ebrank.service.store.postgresql import forgetting, rollup
from ebrank.service.store.postgresql.database import Connections
from ebrank.service.store.postgresql.log_rows import (
    EVENTS,
    RANKINGS,
    Row,
    event,
    event_row,
    listed,
    ranking,
    ranking_row,
)
from ebrank.service.store.postgresql.schema import ORDINALS
from ebrank.service.store.records import (
    Commit,
    EventEntry,
    News,
    Operation,
    RankingEntry,
    RolledUp,
    Written,
)
from ebrank.service.store.rows import ALREADY_COUNTED, ID_SEEN

PAGE = 1000
"""Entries of a kind read at a time."""

_WRITE = f"SELECT * FROM write_log({', '.join(f'${place}' for place in range(1, 14))})"
_PLACES = """SELECT q.name, i.id, i.place FROM unnest($1::bytea[], $2::bytea[]) AS g (query, id)
    JOIN queries AS q ON q.name = g.query JOIN items AS i ON i.query = q.number AND i.id = g.id"""
_PAGE = " WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3"
_NAMES = """SELECT i.query, i.place, i.id
    FROM unnest($1::bigint[], $2::integer[]) AS g (query, place)
    JOIN items AS i ON i.query = g.query AND i.place = g.place"""
_END = """SELECT greatest((SELECT max(seq) FROM rankings), (SELECT max(seq) FROM events))"""
_NTH_LAST = "SELECT seq FROM rankings ORDER BY seq DESC LIMIT 1 OFFSET $1"
_LENGTH = "SELECT (SELECT count(*) FROM rankings) + (SELECT count(*) FROM events)"
_LAST_TIME = """SELECT greatest(last_time, (SELECT max(last_time) FROM queries)) FROM state"""

ACCEPTED = Written("accepted")


class PostgresLog:
    """See `StoredLog` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def write(
        self,
        operations: Sequence[Operation],
        *,
        epoch: int | None = None,
        known: Remembered | None = None,
    ) -> Commit:
        """Log operations and add them to the counters, in order, in one transaction."""
        async with self._database.writer() as connection:
            if epoch not in (None, self._database.epoch):
                raise StoreError(ANOTHER_EPOCH)
            places = await _places(connection, operations)
            given = Given(operations, places, known)
            try:
                if not given.forgets:
                    return given.commit(await connection.fetchrow(_WRITE, *given.arguments, True))
                async with connection.transaction():
                    row = await connection.fetchrow(_WRITE, *given.arguments, False)
                    commit = given.commit(row)
                    await forgetting.add(connection, "evidence", given.placed(row, commit))
                return commit
            except asyncpg.NoDataFoundError:
                raise UnknownQuery("there is no such query; nothing was stored") from None
            except asyncpg.UniqueViolationError as problem:
                raise StoreError(f"a ranking's id is there already ({problem.detail})") from problem

    async def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list that is still in the log."""
        async with self._database.reader() as connection:
            row = await connection.fetchrow(f"{RANKINGS} WHERE r.id = $1", ranking_id.encode())
            if row is None:
                return None
            return ranking(row, (await _names(connection, [row], []))[row["query"]])

    async def entries(self) -> AsyncIterator[Operation]:
        """Yield the log in order, up to its current end."""
        async with self._database.reader() as connection:
            end = await connection.fetchval(_END) or 0
        async for entry in self._between(-1, end):
            yield entry

    async def latest(self, lists: int) -> AsyncIterator[Operation]:
        """Yield the end of the log in order, starting this many lists back."""
        async with self._database.reader() as connection:
            end = await connection.fetchval(_END) or 0
            first = await connection.fetchval(_NTH_LAST, lists - 1)
        async for entry in self._between(-1 if first is None else first - 1, end):
            yield entry

    async def _between(self, after: int, end: int) -> AsyncIterator[Operation]:
        """Yield the entries with numbers after one and up to another."""
        while after < end:
            async with self._database.reader() as connection:
                page, after = await _page(connection, after, end)
            for entry in page:
                yield entry

    async def length(self) -> int:
        """Return how many entries the log holds."""
        async with self._database.reader() as connection:
            return int(await connection.fetchval(_LENGTH))

    async def last_time(self) -> float:
        """Return the time of the latest write, 0 if there is none: clocks may jump back."""
        async with self._database.reader() as connection:
            return float(await connection.fetchval(_LAST_TIME))

    async def roll_up(self, before: float, *, minutes_before: float | None = None) -> RolledUp:
        """Add the log's entries older than a time to the snapshot, and remove them."""
        oldest = before if minutes_before is None else minutes_before
        return await rollup.roll_up(self._database, before, oldest)


# --- writing -------------------------------------------------------------------------------------


class Given:
    """What a write sends to the database, and how it reads the response."""

    def __init__(
        self,
        operations: Sequence[Operation],
        places: Sequence[Sequence[int]],
        known: Remembered | None = None,
    ) -> None:
        if len(operations) > ORDINALS:
            raise StoreError(f"{len(operations)} entries at once; {ORDINALS} are the most")
        self._operations = operations
        self._places = places
        self.forgets = any(entry.epoch for entry in operations)
        self._queries: dict[str, int] = {}
        times: list[float] = []
        lives: list[int | None] = []
        rankings, events = list[Row](), list[Row]()
        counts: dict[tuple[int, int, int, int], int] = {}
        firsts: dict[tuple[int, int], Row] = {}
        rounds = Rounds()
        for seq, (entry, where) in enumerate(zip(operations, places, strict=True)):
            query = self._queries.setdefault(entry.query, len(self._queries) + 1)
            if query > len(times):
                times.append(0.0)
                lives.append(None)
            if entry.hint is not None:
                if lives[query - 1] not in (None, entry.hint.life):
                    raise UnknownQuery(f"query {entry.query!r} was deleted, and given again")
                lives[query - 1] = entry.hint.life
            times[query - 1] = max(times[query - 1], time_of(entry))
            if isinstance(entry, EventEntry):
                events.append(event_row(seq, entry, query, where[0], rounds.of(entry)))
                continue
            rankings.append(ranking_row(seq, entry, query, where))
            for place, outcome, slot, amount in () if self.forgets else steps(entry, where):
                key = query, place, outcome, slot
                counts[key] = counts.get(key, 0) + amount
            unseen = [True] * len(where) if entry.hint is None else entry.hint.unseen
            for place, new in shown(entry, tuple(zip(where, unseen, strict=True))):
                if new:
                    firsts.setdefault((query, place), (query, seq, place, entry.time))
        names = [query.encode() for query in self._queries]
        self._remembered = [None if known is None else known(query) for query in self._queries]
        added = [list(column) for column in zip(*counts, strict=True)] if counts else [[]] * 4
        what = rankings, *added, list(counts.values()), list(firsts.values()), events
        self.arguments = names, lives, self._remembered, times, *what

    def commit(self, row: Row) -> Commit:
        """Return what a write found and did."""
        numbers, versions, model, catalog, logged, outcomes, replaced, showing, known, news = row
        became = {
            seq: Written("accepted", "", shows, outcome, replaces)
            for seq, shows, outcome, replaces in zip(
                logged or (), showing or (), outcomes or (), replaced or (), strict=True
            )
        }
        seen = set(known or ())
        written = []
        for seq, entry in enumerate(self._operations):
            if isinstance(entry, RankingEntry):
                written.append(ACCEPTED)
            elif seq in became:
                written.append(became[seq])
            else:
                written.append(Written("duplicate", ID_SEEN if seq in seen else ALREADY_COUNTED))
        found = dict(zip(self._queries, versions or (), strict=True))
        return Commit(written, found, model, catalog, self._news(numbers, versions, news))

    def _news(self, numbers: Sequence[int], versions: Sequence[int], news: Row) -> dict[str, News]:
        """Return what others have written to queries, if all of it since `known` is known."""
        if not news:
            return {}
        missed: dict[int, list[Row]] = {number: [] for number in numbers}
        for change in news:
            missed[change["query"]].append(change)
        return {
            query: _news(known, missed[number])
            for query, number, version, known in zip(
                self._queries, numbers, versions, self._remembered, strict=True
            )
            if known is not None and len(missed[number]) == version - known - 1 > 0
        }

    def placed(self, row: Row, commit: Commit) -> list[Placed]:
        """Return the entries that were logged, as they were, with their places."""
        numbers = dict(zip(self._queries, row["numbers"], strict=True))
        entries = zip(self._operations, self._places, commit.written, strict=True)
        return [
            (numbers[entry.query], where, as_written(entry, written))
            for entry, where, written in entries
            if written.status == "accepted"
        ]


def _news(since: int, changes: Sequence[Row]) -> News:
    """Return what the writes after a version added."""
    steps, first = list[tuple[int, int, int, int]](), list[tuple[int, float]]()
    for _, _, _, places, outcomes, slots, amounts, shown_places, times in changes:
        if places:
            steps += zip(places, outcomes, slots, amounts, strict=True)
        if shown_places:
            first += zip(shown_places, times, strict=True)
    return News(since, steps, first)


class Rounds:
    """Counts rounds: an event comes after those of the same id, or about the same impression."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, ...], int] = {}

    def of(self, entry: EventEntry) -> int:
        """Return the round of the next event."""
        keys = (entry.query, entry.event_id), (entry.query, entry.ranking_id, entry.item)
        turn = 1 + max(self._last.get(key, 0) for key in keys)
        self._last.update(dict.fromkeys(keys, turn))
        return turn


async def _places(
    connection: asyncpg.Connection, operations: Sequence[Operation]
) -> list[Sequence[int]]:
    """Return the places of the items that each operation names; look them up without a hint."""
    unknown = {
        (entry.query.encode(), name.encode())
        for entry in operations
        if entry.hint is None
        for name in items_of(entry)
    }
    found: dict[tuple[bytes, bytes], int] = {}
    if unknown:
        pairs = sorted(unknown)
        rows = await connection.fetch(
            _PLACES, [query for query, _ in pairs], [name for _, name in pairs]
        )
        found = {(query, name): place for query, name, place in rows}
        missing = unknown - found.keys()
        if missing:
            query, name = min(missing)
            raise StoreError(
                f"query {query.decode()!r} has no item {name.decode()!r}; nothing was stored"
            )
    places: list[Sequence[int]] = []
    for entry in operations:
        if entry.hint is None:
            query = entry.query.encode()
            places.append([found[query, name.encode()] for name in items_of(entry)])
        elif len(entry.hint.places) != len(items_of(entry)):
            raise ValueError(f"a hint of {len(entry.hint.places)} places for other items: {entry}")
        else:
            places.append(entry.hint.places)
    return places


# --- reading -------------------------------------------------------------------------------------


async def _page(
    connection: asyncpg.Connection, after: int, end: int
) -> tuple[list[Operation], int]:
    """Return some entries after a number and up to another, in order, and the last number."""
    parts = [
        await connection.fetch(select + _PAGE, after, end, PAGE) for select in (RANKINGS, EVENTS)
    ]
    # What follows a full page is not known: the other kind must not run ahead of it.
    last = min([end, *(part[-1]["seq"] for part in parts if len(part) == PAGE)])
    kept = [[row for row in part if row["seq"] <= last] for part in parts]
    return await _operations(connection, *kept), last


async def _operations(
    connection: asyncpg.Connection, rankings: Sequence[Row], events: Sequence[Row]
) -> list[Operation]:
    """Return the entries that rows are, in their order."""
    names = await _names(connection, rankings, events)
    numbered: list[tuple[int, Operation]] = [
        *((row[1], ranking(row, names[row[0]])) for row in rankings),
        *((row[1], event(row, names[row[0]])) for row in events),
    ]
    numbered.sort(key=lambda entry: entry[0])
    return [entry for _, entry in numbered]


async def _names(
    connection: asyncpg.Connection, rankings: Sequence[Row], events: Sequence[Row]
) -> dict[int, dict[int, str]]:
    """Return the names of the items that rows name by their places, by query."""
    places = {(row[0], row[5]) for row in events}
    for row in rankings:
        places |= {(row[0], place) for place in listed(row["items"])}
        places |= {(row[0], place) for place in listed(row["would_rank"])}
    pairs = list(places)
    names: dict[int, dict[int, str]] = {row[0]: {} for row in (*rankings, *events)}
    for query, place, name in await connection.fetch(
        _NAMES, [query for query, _ in pairs], [place for _, place in pairs]
    ):
        names[query][place] = name.decode()
    return names
