"""Queries with their items, and the catalog of features that queries share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from ebrank.service.store import tables
from ebrank.service.store.driver import CatalogChanged, Connection, StoreError, StoreGroup
from ebrank.service.store.meta import set_meta, touch
from ebrank.service.store.records import (
    LIFE,
    CatalogCommit,
    FeatureTally,
    NewItem,
    QueryRow,
    QueryState,
)
from ebrank.service.store.rows import count_rows, item_rows, snapshot_of, state_of
from ebrank.typing import Features

PAGE = 1000
"""Rows read at a time where there may be many."""
QUICK_ITEMS = 500
"""A query of so many items is read from a file in 2 ms; more must not block others."""
LAST = "\U0010ffff"
"""Follows every other character."""

_COUNTED = ", ".join(tables.COUNTS[1:])
_SNAPSHOT_OF = tables.SNAPSHOT.inserted(
    f"SELECT {', '.join(tables.COUNTS)} FROM evidence WHERE query = ?1"
)
_ADDED = tables.QUERIES.inserted("SELECT ?1, lives * ?2 + 1, 0, ?3 FROM state")


class StoredItems(StoreGroup):
    """Queries and their items."""

    async def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were added."""
        rows = await self._fetch_long("SELECT name FROM queries ORDER BY number")
        return [name for (name,) in rows]

    async def versions(self) -> AsyncIterator[tuple[str, int]]:
        """Yield each query and its version, in the order in which they were added."""
        sql = "SELECT number, name, version FROM queries WHERE number > ?1 ORDER BY number LIMIT ?2"
        last = -1
        while page := await self._fetch_long(sql, last, PAGE):
            for _, name, version in page:
                yield name, version
            last = page[-1][0]

    async def find(
        self, prefix: str = "", contains: str = "", after: str | None = None, limit: int = 100
    ) -> list[QueryRow]:
        """Return queries whose names begin with a text and contain another, after a name.

        They are ordered by their names as UTF-8.
        """
        above, lowest = (">", after) if after is not None and after >= prefix else (">=", prefix)
        sql = (
            f"SELECT name, size FROM queries WHERE name {above} ?1 AND name < ?2 "
            "AND (?3 = '' OR name != replace(name, ?3, '')) ORDER BY name LIMIT ?4"
        )
        rows = await self._fetch_long(sql, lowest, prefix + LAST, contains, limit)
        return [QueryRow(*row) for row in rows]

    async def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        if "arrays" in self._driver.texts:
            rows = await self._fetch(self._driver.texts["arrays"], query)
            return _of_arrays(query, rows[0]) if rows else None
        work = partial(_of_rows, query=query)
        async with self._driver.read() as connection:
            size = await connection.fetch("SELECT size FROM queries WHERE name = ?1", query)
            if not size or size[0][0] <= QUICK_ITEMS:
                return await work(connection)
        return await self._driver.read_long(work)

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened.

        In a store that others write to, that is not of one moment: open it to `read`.
        """
        state = await self.load(query)
        sql = f"SELECT {_COUNTED} FROM snapshot JOIN queries ON query = number WHERE name = ?1"
        return state and await self._decoded(partial(snapshot_of, state), sql, query)

    async def put(
        self,
        query: str,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        based_on: int | None = None,
    ) -> int:
        """Add candidates or change their features; return the query's version.

        Withdrawn ones come back, and existing items keep their counters. Settings in `meta` are
        kept in the same transaction, and make a new version of the catalog: they are rejected with
        `CatalogChanged` if they are `based_on` another version. Without items, nothing changes.
        """
        if not items:
            sql = "SELECT coalesce(max(version), 0) FROM queries WHERE name = ?1"
            return await self._number(sql, query)
        async with self._driver.write() as connection:
            if meta:
                await _check_catalog(connection, based_on)
                await set_meta(connection, meta)
                await connection.execute("UPDATE state SET catalog = catalog + 1")
            await touch(connection, time)
            return await _put(connection, query, items, time)

    async def withdraw(self, query: str, item: str, time: float) -> int | None:
        """Withdraw a candidate; return the query's version, or None if it was not a candidate.

        Its history stays.
        """
        sql = (
            "SELECT number FROM queries JOIN items ON query = number "
            "WHERE name = ?1 AND id = ?2 AND active"
        )
        async with self._driver.write() as connection:
            for (number,) in await connection.fetch(sql, query, item):
                await touch(connection, time)
                await connection.lock([number])
                gone = "UPDATE items SET active = false WHERE query = ?1 AND id = ?2"
                await connection.execute(gone, number, item)
                advance = "UPDATE queries SET version = version + 1 WHERE number = ?1 "
                [(version,)] = await connection.fetch(f"{advance} RETURNING version", number)
                return int(version)
        return None

    async def restore(self, states: Sequence[QueryState], time: float) -> None:
        """Add queries with the history that their counters hold, as if it had been rolled up.

        The store must not have them yet; `time` is that of the latest entry of this history.
        """
        names = [(state.query,) for state in states]
        async with self._driver.write() as connection:
            await touch(connection, time)
            for (name,) in await connection.matching(tables.QUERIES, ("name",), ("name",), names):
                raise StoreError(f"query {name!r} already exists")
            [(lives,)] = await connection.fetch("SELECT lives FROM state")
            new = [(state.query, lives * LIFE + 1, len(state.ids), time) for state in states]
            await connection.insert(tables.QUERIES, new)
            columns = ("name", "number")
            pairs = await connection.matching(tables.QUERIES, columns, ("name",), names)
            numbers: dict[str, int] = dict(pairs)
            items, features, counts = list[tables.Row](), list[tables.Row](), list[tables.Row]()
            for state in states:
                number = numbers[state.query]
                items += ((number, place, *row) for place, row in enumerate(item_rows(state)))
                features += (
                    (number, place, tables.packed(row)) for place, row in enumerate(state.features)
                )
                counts += ((number, *row) for row in count_rows(state))
            await connection.insert(tables.ITEMS, items)
            await connection.insert(tables.FEATURES, features)
            await connection.insert(tables.EVIDENCE, counts)
            await connection.many(_SNAPSHOT_OF, [(number,) for number in numbers.values()])

    async def tally(self) -> FeatureTally:
        """Return how many items all queries have, and how many have a number in each column."""
        sql = (
            "SELECT numbers, query, place FROM features WHERE (query, place) > (?1, ?2) "
            "ORDER BY query, place LIMIT ?3"
        )
        total, last = FeatureTally(), (0, 0)
        while page := await self._fetch_long(sql, *last, PAGE):
            total = total.plus(tables.features_of([blob for blob, *_ in page]))
            last = page[-1][1:]
        return total


async def _of_rows(connection: Connection, query: str) -> QueryState | None:
    """Return a query, given a connection that sees one moment."""
    sql = "SELECT number, version, size FROM queries WHERE name = ?1"
    for number, version, size in await connection.fetch(sql, query):
        sql = "SELECT id, entered, active, first_shown FROM items WHERE query = ?1 ORDER BY place"
        rows: Any = await connection.fetch(sql, number)
        sql = "SELECT numbers FROM features WHERE query = ?1 ORDER BY place"
        features = tables.features_of([blob for (blob,) in await connection.fetch(sql, number)])
        if len(rows) != size:
            raise ValueError("items, features and counts of a query do not fit together")
        sql = f"SELECT {_COUNTED} FROM evidence WHERE query = ?1"
        counts: Any = await connection.fetch(sql, number)
        return state_of(query, rows, features, counts, version)
    return None


def _of_arrays(query: str, row: tables.Row) -> QueryState:
    """Return the same, given one row with an array for each column."""
    version, names, entered, active, first, blobs, *counted = row
    items: Any = list(zip(names, entered, active, first, strict=True))
    counts: Any = zip(*counted, strict=True) if counted[0] else []
    return state_of(query, items, tables.features_of(blobs), counts, version)


async def _put(connection: Connection, query: str, items: Sequence[NewItem], time: float) -> int:
    # Others that add this query wait for the row of `state`, which this transaction has changed.
    advance = "UPDATE queries SET version = version + 1 WHERE name = ?1"
    returned = "RETURNING number, version, size"
    [(number, version, size)] = await connection.fetch(
        f"{advance} {returned}", query
    ) or await connection.fetch(f"{_ADDED} {returned}", query, LIFE, time)
    features = {item.id: tables.packed(item.features) for item in items}
    places: dict[str, int] = {}
    withdrawn: list[tables.Row] = []
    if size:
        keys = [(number, name) for name in features]
        for name, place, active in await connection.matching(
            tables.ITEMS, ("id", "place", "active"), ("query", "id"), keys
        ):
            places[name] = place
            if not active:
                withdrawn.append((number, place))
    new = [name for name in features if name not in places]
    rows = [(number, place, name, time, True, None) for place, name in enumerate(new, size)]
    places |= {name: place for place, name in enumerate(new, size)}
    await connection.insert(tables.ITEMS, rows)
    back = "UPDATE items SET active = true WHERE query = ?1 AND place = ?2"
    await connection.many(back, withdrawn)
    given = [(number, places[name], numbers) for name, numbers in features.items()]
    await connection.insert(tables.FEATURES, given, "replace")
    grown = "UPDATE queries SET size = size + ?2 WHERE number = ?1"
    await connection.execute(grown, number, len(new))
    return int(version)


async def _check_catalog(connection: Connection, based_on: int | None) -> int:
    """Lock the catalog and return its version; raise if it is not the one a write is based on."""
    [(version,)] = await connection.fetch("UPDATE state SET catalog = catalog RETURNING catalog")
    if based_on not in (None, version):
        raise CatalogChanged(
            "another server changed the catalog or the features meanwhile. Nothing of this was "
            "stored; send the request again."
        )
    return int(version)


class StoredCatalog(StoreGroup):
    """Features of items that all queries share, by the items' names."""

    async def version(self) -> int:
        """Return how many writes have changed the catalog, or a setting stored with it."""
        return await self._number("SELECT catalog FROM state")

    async def read(self, names: Sequence[str], since: int = 0) -> dict[str, Features]:
        """Return the rows of the items that were put after a version.

        Names that are not in the catalog are left out. The caller owns the arrays.
        """
        if len(names) <= PAGE:
            async with self._driver.read() as connection:
                return await _changed(connection, names, since)
        return await self._driver.read_long(partial(_changed, names=names, since=since))

    async def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield all items with their rows, in the order of their names as UTF-8."""
        async for page in self._pages():
            for entry in page:
                yield entry

    async def _pages(self) -> AsyncIterator[list[tuple[str, Features]]]:
        last = None
        while page := await self.find(last, PAGE):
            yield page
            last = page[-1][0]

    async def find(self, after: str | None = None, limit: int = 100) -> list[tuple[str, Features]]:
        """Return items after a name with their rows, in the order of `entries`."""
        where, given = ("", [limit]) if after is None else ("WHERE id > ?2", [limit, after])
        sql = f"SELECT id, numbers FROM catalog {where} ORDER BY id LIMIT ?1"

        return await self._decoded(
            lambda rows: [(name, tables.unpacked(blob)) for name, blob in rows], sql, *given
        )

    async def put(
        self,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        based_on: int | None = None,
    ) -> CatalogCommit:
        """Add items or change their rows, and keep settings in the same transaction.

        The version grows by one if a row is new or changed, or if settings are given, which are
        rejected with `CatalogChanged` if they are `based_on` another version.
        """
        rows = {item.id: tables.packed(item.features) for item in items}
        names = [(name,) for name in rows]
        async with self._driver.write() as connection:
            version = await _check_catalog(connection, based_on if meta else None)
            columns = ("id", "numbers")
            rows_there = await connection.matching(tables.CATALOG, columns, ("id",), names)
            there: dict[str, bytes] = dict(rows_there)
            changed = [
                (name, version + 1, numbers)
                for name, numbers in rows.items()
                if there.get(name) != numbers
            ]
            if not (changed or meta):
                return CatalogCommit(version, 0)
            await connection.insert(tables.CATALOG, changed, "replace")
            await set_meta(connection, meta or {})
            await connection.execute("UPDATE state SET catalog = ?1", version + 1)
            await touch(connection, time)
            return CatalogCommit(version + 1, len(changed))

    async def tally(self) -> FeatureTally:
        """Return how many items there are, and how many have a number in each column."""
        total = FeatureTally()
        async for page in self._pages():
            total = total.plus(tables.padded([row for _, row in page]))
        return total


async def _changed(connection: Connection, names: Sequence[str], since: int) -> dict[str, Features]:
    """Return what changed after a version, through the smaller set: the names or the changes."""
    if since:
        sql = "SELECT id, numbers FROM catalog WHERE version > ?1 LIMIT ?2"
        changes = await connection.fetch(sql, since, len(names) + 1)
        if len(changes) <= len(names):
            wanted = set(names)
            return {name: tables.unpacked(blob) for name, blob in changes if name in wanted}
    keys = [(name,) for name in names]
    columns = ("id", "numbers", "version")
    rows = await connection.matching(tables.CATALOG, columns, ("id",), keys)
    return {name: tables.unpacked(blob) for name, blob, version in rows if version > since}
