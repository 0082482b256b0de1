"""What can be wrong with the tables that other parts of the store rely on, found by SQL.

PostgreSQL looks after its files; we must check tables that refer to each other, lists as JSON and
numbers as bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ebrank.service.store.records import Fault, FaultKind

if TYPE_CHECKING:
    import asyncpg

MOST = 10
"""Faults of one kind that are reported."""

_OF_QUERIES = ("items", "evidence", "snapshot", "rankings", "events")
_OF_PLACES = ("evidence", "snapshot", "events")

_SIZES = """SELECT format('query %s has %s items, %s are expected', q.name, count(i.place), q.size)
    FROM queries AS q LEFT JOIN items AS i ON i.query = q.number GROUP BY q.number
    HAVING count(i.place) != q.size OR coalesce(max(i.place), -1) != q.size - 1"""
_FEATURES = """SELECT format('item %s of query %s has features in bytes of a wrong number', i.id,
    q.name) FROM items AS i JOIN queries AS q ON i.query = q.number
    WHERE length(i.features) % 4 != 0"""
_SHARED = """SELECT format('the catalog has features of %s in bytes of a wrong number', id)
    FROM catalog WHERE length(features) % 4 != 0"""
_CLICKS = """SELECT format('item %s of query %s has more clicks than impressions in slot %s', i.id,
    q.name, e.slot) FROM evidence AS e JOIN queries AS q ON e.query = q.number
    JOIN items AS i ON i.query = e.query AND i.place = e.place GROUP BY q.name, i.id, e.slot
    HAVING sum(CASE e.outcome WHEN 0 THEN e.count ELSE -e.count END) < 0"""
_LISTS = """SELECT format('ranking %s has parts of other lengths than its list', id) FROM rankings
    WHERE length(explored) NOT IN (0, json_array_length(items::json))
    OR length(relevance) NOT IN (0, 8 * json_array_length(items::json))"""
_LISTED = """SELECT format('ranking %s lists an item at place %s, which its query has not', r.id,
    place) FROM rankings AS r JOIN queries AS q ON r.query = q.number,
    json_array_elements_text(r.items::json) AS place
    WHERE place::integer NOT BETWEEN 0 AND q.size - 1"""
_STATE = """SELECT format('the table state has %s rows, 1 is expected', count(*)) FROM state
    HAVING count(*) != 1"""
_ACTIVE = """SELECT format('the active model %s is not there', active_model) FROM state
    WHERE active_model != 0 AND active_model NOT IN (SELECT version FROM models)"""


async def faults(connection: asyncpg.Connection) -> list[Fault]:
    """Return the first faults of each kind."""
    found = []
    for kind, sql in _questions():
        rows = await connection.fetch(f"{sql} LIMIT {MOST}")
        found += [Fault(kind, what) for (what,) in rows]
    return found


def _questions() -> Iterator[tuple[FaultKind, str]]:
    """Yield statements, each of which selects faults in words."""
    for table in _OF_QUERIES:
        yield (
            "orphan",
            f"SELECT format('{table}: %s rows of query number %s, which is not there', count(*), "
            f"query) FROM {table} WHERE query NOT IN (SELECT number FROM queries) GROUP BY query",
        )
    for table in _OF_PLACES:
        yield (
            "orphan",
            f"SELECT format('{table}: a row of query %s at place %s, where no item is', q.name, "
            f"place) FROM {table} AS t JOIN queries AS q ON t.query = q.number "
            "WHERE place NOT BETWEEN 0 AND size - 1",
        )
    for table in ("evidence", "snapshot"):
        yield (
            "row",
            f"SELECT format('{table}: a count of %s in query number %s', count, query) "
            f"FROM {table} WHERE count < 0",
        )
    yield "row", _SIZES
    yield "row", _FEATURES
    yield "row", _SHARED
    yield "row", _CLICKS
    yield "row", _LISTS
    yield "row", _LISTED
    yield "row", _STATE
    yield "model", _ACTIVE
