"""Deletions: deleted data is overwritten where possible, and the log is searched by portions.

The log has no index by query or user, which every list would have to update. So a query is gone at
once, and its entries in the log, which nobody finds without it, follow in portions.

The proof is there from the first transaction on, and each portion adds to its counts. What was
interrupted is finished when the store is opened to be served, or when it is asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import astuple

from ebrank.service.store.driver import Connection, StoreGroup
from ebrank.service.store.log import BEGINNING, SLACK_SECONDS
from ebrank.service.store.meta import touch
from ebrank.service.store.records import Deletion, Wanted
from ebrank.service.store.retraction import Chosen, chosen, retracted
from ebrank.service.store.tables import DELETIONS, ENDS, UNFINISHED, Row

PAUSE_SECONDS = 0.005

_OF_QUERY = ("items", "features", "evidence", "snapshot")
_PROOFS = f"SELECT {', '.join(DELETIONS.names)} FROM deletions"
_BEGUN = """SELECT proof FROM unfinished JOIN deletions ON number = proof
    WHERE kind = 'query' AND digest = ?1 ORDER BY proof DESC"""
_BORDERS = f"SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM {ENDS}"
# By number: an index would lead to all events of the query each time.
_REMOVALS = {
    "user": [("rankings", 'UPDATE rankings SET "user" = NULL WHERE "user" = ?1')],
    "query": [
        ("rankings", "DELETE FROM rankings WHERE +query = ?1"),
        ("events", "DELETE FROM events WHERE +query = ?1"),
    ],
}


class StoredDeletions(StoreGroup):
    """Deletes things permanently, and keeps a proof. Counters stay snapshot + log."""

    async def all(self) -> list[Deletion]:
        """Return the proofs of all deletions, oldest first."""
        return [Deletion(*row) for row in await self._fetch_long(f"{_PROOFS} ORDER BY number")]

    async def count(self) -> int:
        """Return a number that grows with every item and query deleted, and query expired."""
        items = "SELECT count(*) FROM deletions WHERE kind = 'item'"
        return await self._number(f"SELECT lives + ({items}) FROM state")

    async def query(self, query: str, digest: str, time: float) -> Deletion | None:
        """Delete a query: its items, counters and entries of the log; None if it is unknown."""
        sql = "SELECT number FROM queries WHERE name = ?1"
        async with self._driver.chore(erases=True) as connection:
            rows = await connection.fetch(sql, query)
            if not rows:
                begun = await connection.fetch(_BEGUN, digest)
                if not begun:
                    return None
                [(proof,), *_] = begun
            else:
                await touch(connection, time)
                [(number,)] = rows
                await _delete_query(connection, number)
                proof = await _begun(connection, Deletion(time, "query", digest, 1), query=number)
        return await self._finished(proof)

    async def item(
        self, item: str, stand_in: str, digest: str, time: float
    ) -> tuple[Deletion, list[str]] | None:
        """Delete an item from all queries and the catalog; None if it is unknown.

        A stand-in takes its place, which is withdrawn and has no features: lists and counters of
        others depend on that place. Also return the queries that had it.
        """

        async def places(connection: Connection) -> list[Row]:
            sql = "SELECT query, place, name FROM items JOIN queries ON number = query"
            return await connection.fetch(f"{sql} WHERE id = ?1 ORDER BY query", item)

        alone = not self._driver.shared
        there = await self._driver.read_long(places) if alone else []
        async with self._driver.chore(erases=True) as connection:
            there = there if alone else await places(connection)
            shared = await connection.fetch("SELECT 1 FROM catalog WHERE id = ?1", item)
            if not (shared or there):
                return None
            await touch(connection, time)  # from now on, others wait to put items
            there = there if alone else await places(connection)
            await connection.lock([number for number, *_ in there])
            await connection.execute("DELETE FROM catalog WHERE id = ?1", item)
            await connection.execute("UPDATE state SET catalog = catalog + ?1", len(shared))
            keys = [(number, place) for number, place, _ in there]
            where = "WHERE query = ?1 AND place = ?2"
            renamed = [(*key, stand_in) for key in keys]
            await connection.many(f"UPDATE items SET id = ?3, active = false {where}", renamed)
            nothing = [(*key, b"") for key in keys]
            await connection.many(f"UPDATE features SET numbers = ?3 {where}", nothing)
            await connection.many(
                "UPDATE queries SET version = version + 1 WHERE number = ?1",
                [(number,) for number, *_ in there],
            )
            proof = Deletion(time, "item", digest, len(there))
            await _noted(connection, proof)
        return proof, [name for *_, name in there]

    async def user(self, user: str, digest: str, time: float) -> Deletion:
        """Remove a user, given as in the log, from all lists, which still count."""
        async with self._driver.chore(erases=True) as connection:
            await touch(connection, time)
            proof = await _begun(connection, Deletion(time, "user", digest), user=user)
        return await self._finished(proof)

    async def retractable(self, wanted: Wanted) -> Chosen:
        """Return what a retraction would take back; nothing changes."""
        return await chosen(self._driver, wanted)

    async def retract(
        self, wanted: Wanted, digest: str, time: float
    ) -> tuple[Deletion | None, list[str]]:
        """Take back what lists and their events added to counters; None if there is nothing.

        They stay in the log, but do not count. Also return the queries that changed.
        A few queries at a time change in one transaction, with the proof; if it is interrupted,
        what was done is consistent, and the same call again does the rest, with a proof of its own.
        """
        proof, names = None, list[str]()
        while rest := (await chosen(self._driver, wanted)).queries:
            if proof is None:
                async with self._driver.chore() as connection:
                    await touch(connection, time)
                    proof = await _noted(connection, Deletion(time, "retraction", digest))
            async for changed in retracted(self._driver, wanted, rest, proof):
                names += changed
                await asyncio.sleep(PAUSE_SECONDS)
        if proof is None:
            return None, []
        [row] = await self._fetch(f"{_PROOFS} WHERE number = ?1", proof)
        return Deletion(*row), names

    async def restore(self, deletions: Sequence[Deletion]) -> None:
        """Add proofs from elsewhere."""
        async with self._driver.write() as connection:
            await connection.insert(DELETIONS, [astuple(proof) for proof in deletions])

    async def expire(self, before: float, most: int) -> AsyncIterator[str]:
        """Delete some queries that have had no list and no event since a time; yield their names.

        One without any counts from when it was added. Those with entries in the log stay until
        they are rolled up. There is no proof: it would remain of each.
        """

        async def idle(connection: Connection) -> list[Row]:
            [(begins,)] = await connection.fetch(BEGINNING, -1)
            border = before if begins is None else min(before, begins - SLACK_SECONDS)
            sql = "SELECT number, name, used FROM queries WHERE used < ?1 ORDER BY number LIMIT ?2"
            return await connection.fetch(sql, border, most)

        for number, name, used in await self._driver.read_long(idle):
            async with self._driver.chore() as connection:
                await touch(connection, used)
                gone = await connection.lock([number], wait=False)
                sql = "SELECT 1 FROM queries WHERE number = ?1 AND used < ?2"
                if gone := gone and bool(await connection.fetch(sql, number, before)):
                    await _delete_query(connection, number)
            if gone:
                yield name
            await asyncio.sleep(PAUSE_SECONDS)

    async def purge(self) -> None:
        """Rewrite all files, so that no trace of deleted data remains.

        It takes as long as writing everything, and nobody else can write meanwhile.
        """
        await self.finish()
        await self._driver.purge()

    async def finish(self) -> None:
        """Finish the deletions that were interrupted."""
        for (proof,) in await self._fetch("SELECT proof FROM unfinished"):
            await self._finished(proof, pause=0.0)

    async def _finished(self, proof: int, pause: float = PAUSE_SECONDS) -> Deletion:
        """Remove what a deletion left in the log while others write, and return its proof."""
        begun = await self._fetch('SELECT query, "user" FROM unfinished WHERE proof = ?1', proof)
        [(first, last)] = await self._fetch(_BORDERS)
        for query, user in begun:
            for table, sql in _REMOVALS["user" if query is None else "query"]:
                for after in range(first - 1, last, self._driver.portion):
                    given = query or user, after, after + self._driver.portion
                    async with self._driver.chore(erases=True) as connection:
                        where = "AND seq > ?2 AND seq <= ?3"
                        changed = await connection.execute(f"{sql} {where}", *given)
                        count = f"UPDATE deletions SET {table} = {table} + ?1 WHERE number = ?2"
                        await connection.execute(count, changed, proof)
                    if pause:
                        await asyncio.sleep(pause)
            async with self._driver.chore(erases=True) as connection:
                if query is not None:
                    await _delete_parts(connection, query)  # a roll-up may have come in between
                await connection.execute("DELETE FROM unfinished WHERE proof = ?1", proof)
        [row] = await self._fetch(f"{_PROOFS} WHERE number = ?1", proof)
        return Deletion(*row)


async def _delete_query(connection: Connection, number: int) -> None:
    """Delete a query, but for its entries in the log."""
    await connection.execute("UPDATE state SET lives = lives + 1")
    await connection.execute("DELETE FROM queries WHERE number = ?1", number)
    await _delete_parts(connection, number)


async def _delete_parts(connection: Connection, number: int) -> None:
    for table in _OF_QUERY:
        await connection.execute(f"DELETE FROM {table} WHERE query = ?1", number)


async def _noted(connection: Connection, proof: Deletion) -> int:
    """Keep a proof; return its number."""
    values = ", ".join(f"?{at}" for at in range(1, len(DELETIONS.names) + 1))
    sql = DELETIONS.inserted(f"VALUES ({values}) RETURNING number")
    [(number,)] = await connection.fetch(sql, *astuple(proof))
    return int(number)


async def _begun(
    connection: Connection, proof: Deletion, *, query: int | None = None, user: str | None = None
) -> int:
    """Note a deletion whose traces in the log must follow; return the number of its proof."""
    number = await _noted(connection, proof)
    await connection.insert(UNFINISHED, [(number, query, user)])
    return number
