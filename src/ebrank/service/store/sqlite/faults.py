"""What can be wrong with a database that other parts of the store rely on, found by SQL.

SQLite looks after pages and indexes (`integrity_check`); we must check tables that refer to each
other, lists as JSON and numbers as blobs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from ebrank.evidence.slots import SLOTS
from ebrank.service.store.records import Fault, FaultKind

MOST = 10
"""Faults of one kind that are reported."""

_OF_QUERIES = ("items", "features", "evidence", "snapshot", "rankings", "events")
_OF_PLACES = ("features", "evidence", "snapshot", "events")

_SIZES = """SELECT 'query ' || quote(name) || ' has ' || count(place) || ' items, ' || size ||
    ' are expected' FROM queries LEFT JOIN items ON query = number GROUP BY number
    HAVING count(place) != size OR coalesce(max(place), -1) != size - 1"""
_FEATURES = """SELECT 'query ' || quote(name) || ': ' || count(place) || ' of ' || size ||
    ' items have features, ' || sum(length(numbers) % 4 != 0) || ' in blobs of a wrong size'
    FROM queries LEFT JOIN features ON query = number GROUP BY number
    HAVING count(place) != size OR sum(length(numbers) % 4 != 0)"""
_SHARED = """SELECT 'the catalog has features of ' || quote(id) || ' in a blob of a wrong size'
    FROM catalog WHERE length(numbers) % 4 != 0"""
_CLICKS = """SELECT 'item ' || quote(items.id) || ' of query ' || quote(name) ||
    ' has more clicks than impressions in slot ' || slot FROM evidence
    JOIN queries ON evidence.query = number JOIN items USING (query, place)
    GROUP BY evidence.query, place, slot HAVING sum(iif(outcome, -count, count)) < 0"""
_LISTS = """SELECT 'ranking ' || quote(id) || ' holds no list, or parts of other lengths'
    FROM rankings WHERE CASE WHEN json_valid(items) AND json_valid(coalesce(would_rank, '[]'))
    THEN length(explored) NOT IN (0, json_array_length(items))
    OR length(relevance) NOT IN (0, 8 * json_array_length(items)) ELSE 1 END"""
_LISTED = """SELECT 'ranking ' || quote(rankings.id) || ' lists an item at place ' ||
    quote(listed.value) || ', which its query has not' FROM rankings JOIN queries ON query = number,
    json_each(CASE WHEN json_valid(items) THEN items ELSE '[]' END) AS listed
    WHERE typeof(listed.value) != 'integer' OR NOT listed.value BETWEEN 0 AND size - 1"""
_STATE = """SELECT 'the table state has ' || count(*) || ' rows, 1 is expected' FROM state
    HAVING count(*) != 1"""
_ACTIVE = """SELECT 'the active model ' || active_model || ' is not there' FROM state
    WHERE active_model != 0 AND active_model NOT IN (SELECT version FROM models)"""
_ROLLED = """SELECT 'entry ' || seq || ' of the log was rolled up already' FROM
    (SELECT seq FROM rankings UNION ALL SELECT seq FROM events), state WHERE seq <= rolled_up"""


_COLUMNS = """SELECT tables.name, columns.name, columns.type, columns."notnull"
    FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
    WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite%'"""


def faults(connection: sqlite3.Connection) -> list[Fault]:
    """Return the first faults of each kind."""
    found = [fault for kind, sql in _questions() for fault in _asked(connection, kind, sql)]
    try:
        columns = connection.execute(_COLUMNS).fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        return [*found, Fault("file", str(problem))]
    for column in columns:
        found += _asked(connection, "row", _misfits(*column))
    return found


def _misfits(table: str, column: str, kind: str, not_null: int) -> str:
    """Return a statement that gives a text if a column holds values of another type than its own.

    SQLite itself lets any column hold any value.
    """
    fitting = f"'{kind.lower()}'" if not_null else f"'{kind.lower()}', 'null'"
    return (
        f"SELECT '{table}: ' || count(*) || ' values of {column} are not of the type {kind}' "
        f"FROM {table} WHERE typeof({column}) NOT IN ({fitting}) HAVING count(*) > 0"
    )


def _questions() -> Iterator[tuple[FaultKind, str]]:
    """Yield statements, each of which gives a text for each fault."""
    yield "file", f"PRAGMA integrity_check({MOST})"
    for table in _OF_QUERIES:
        yield (
            "orphan",
            f"SELECT '{table}: ' || count(*) || ' rows of query ' || quote(query) || ', which is "
            f"not there' FROM {table} WHERE query NOT IN (SELECT number FROM queries) "
            "GROUP BY query",
        )
    for table in _OF_PLACES:
        yield (
            "orphan",
            f"SELECT '{table}: query ' || quote(name) || ' has no item at place ' || quote(place) "
            f"FROM {table} JOIN queries ON query = number WHERE NOT place BETWEEN 0 AND size - 1",
        )
    yield "row", _SIZES
    yield "row", _FEATURES
    yield "row", _SHARED
    for table in ("evidence", "snapshot"):
        yield (
            "row",
            f"SELECT '{table}: query ' || quote(query) || ', place ' || quote(place) || ': ' || "
            f"quote(count) || ' of outcome ' || quote(outcome) || ' in slot ' || quote(slot) "
            f"FROM {table} WHERE count < 0 OR outcome < 0 OR NOT slot BETWEEN 0 AND {SLOTS - 1}",
        )
    yield "row", _CLICKS
    yield "row", _LISTS
    yield "orphan", _LISTED
    yield "row", _STATE
    yield "model", _ACTIVE
    yield "log", _ROLLED


def _asked(connection: sqlite3.Connection, kind: FaultKind, sql: str) -> Iterator[Fault]:
    try:
        texts = [str(row[0]) for row in connection.execute(sql).fetchmany(MOST)]
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        yield Fault("file", str(problem))
        return
    for text in texts:
        if text != "ok":
            yield Fault(kind, text)
