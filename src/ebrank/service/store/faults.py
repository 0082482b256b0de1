"""What can be wrong with the tables that other parts of the store rely on.

A database looks after its own files and indexes; we must check tables that refer to each other,
lists as JSON and numbers as bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ebrank.evidence.slots import SLOTS
from ebrank.service.store.counting import listed
from ebrank.service.store.driver import Connection, StoreError
from ebrank.service.store.records import Fault, FaultKind
from ebrank.service.store.tables import Row

MOST = 10
"""Faults of one kind that are reported."""
PAGE = 1000

_OF_QUERIES = ("items", "features", "evidence", "snapshot", "rankings", "events")
_QUERIES = """SELECT number FROM queries
    UNION SELECT query FROM unfinished WHERE query IS NOT NULL"""  # what a deletion will remove
_OF_PLACES = ("features", "evidence", "snapshot", "events")
_LISTS = """SELECT seq, id, items, length(explored), length(relevance), size
    FROM rankings JOIN queries ON query = number WHERE seq > ?1 ORDER BY seq LIMIT ?2"""


async def faults(connection: Connection) -> list[Fault]:
    """Return the first faults of each kind."""
    faulty = []
    for kind, words, sql in _questions():
        try:
            rows = await connection.fetch(f"{sql} LIMIT {MOST}")
        except StoreError as problem:
            faulty.append(Fault("file", str(problem)))
        else:
            faulty += [Fault(kind, words.format(*row)) for row in rows]
    try:
        return faulty + await _lists(connection)
    except StoreError as problem:
        return [*faulty, Fault("file", str(problem))]


def _questions() -> Iterator[tuple[FaultKind, str, str]]:
    """Yield statements, each of which selects the values of a fault in words."""
    for table in _OF_QUERIES:
        yield (
            "orphan",
            f"{table}: {{}} rows of query {{}}, which is not there",
            f"SELECT count(*), query FROM {table} WHERE query NOT IN ({_QUERIES}) GROUP BY query",
        )
    for table in _OF_PLACES:
        yield (
            "orphan",
            f"{table}: query {{!r}} has no item at place {{}}",
            f"SELECT name, place FROM {table} JOIN queries ON query = number "
            "WHERE place NOT BETWEEN 0 AND size - 1",
        )
    for table, what in (("items", "items"), ("features", "rows of features")):
        yield (
            "row",
            f"query {{!r}} has {{}} {what}, {{}} are expected",
            f"SELECT name, count(place), size FROM queries LEFT JOIN {table} ON query = number "
            "GROUP BY number, name, size "
            "HAVING count(place) != size OR coalesce(max(place), -1) != size - 1",
        )
    yield (
        "row",
        "query {!r} has features of a wrong size at place {}",
        "SELECT name, place FROM features JOIN queries ON query = number "
        "WHERE length(numbers) % 4 != 0",
    )
    yield (
        "row",
        "the catalog has features of {!r} of a wrong size",
        "SELECT id FROM catalog WHERE length(numbers) % 4 != 0",
    )
    for table in ("evidence", "snapshot"):
        yield (
            "row",
            f"{table}: query {{}}, place {{}}: {{}} of outcome {{}} in slot {{}}",
            f"SELECT query, place, count, outcome, slot FROM {table} "
            f"WHERE count < 0 OR outcome < 0 OR slot NOT BETWEEN 0 AND {SLOTS - 1}",
        )
    yield (
        "row",
        "item {!r} of query {!r} has more clicks than impressions in slot {}",
        "SELECT id, name, slot FROM evidence AS e JOIN queries ON e.query = number "
        "JOIN items AS i ON i.query = e.query AND i.place = e.place "
        "GROUP BY number, name, id, slot "
        "HAVING sum(CASE outcome WHEN 0 THEN count ELSE -count END) < 0",
    )
    yield (
        "row",
        "the table state has {} rows, 1 is expected",
        "SELECT count(*) FROM state HAVING count(*) != 1",
    )
    yield (
        "model",
        "the active model {} is not there",
        "SELECT active_model FROM state "
        "WHERE active_model != 0 AND active_model NOT IN (SELECT version FROM models)",
    )


async def _lists(connection: Connection) -> list[Fault]:
    """Return faults of lists in the log."""
    faulty, last = list[Fault](), -1
    while True:
        rows = await connection.fetch(_LISTS, last, PAGE)
        faulty += [fault for row in rows for fault in _list_faults(row)]
        if len(rows) < PAGE or len(faulty) >= MOST:
            return faulty[:MOST]
        last = rows[-1][0]


def _list_faults(row: Row) -> Iterator[Fault]:
    _, name, items, explored, relevance, size = row
    try:
        places = listed(items)
        length = len(places)
    except (ValueError, TypeError):
        yield Fault("row", f"ranking {name!r} holds no list")
        return
    if explored not in (0, length) or relevance not in (0, 8 * length):
        yield Fault("row", f"ranking {name!r} has parts of other lengths than its list")
    for place in places:
        if not (isinstance(place, int) and 0 <= place < size):
            yield Fault("orphan", f"ranking {name!r} lists place {place!r}, which its query lacks")
