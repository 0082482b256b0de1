"""Rows by their keys: looked up, however many a table has."""

from __future__ import annotations

import sqlite3

from ebrank.service.store.sqlite.database import make_tables
from ebrank.service.store.sqlite.driver import matching

SIZE = 1000


def a_query() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    make_tables(connection)
    connection.executemany(
        "INSERT INTO items VALUES (7, ?, ?, 0, 1, NULL)",
        [(place, f"item {place}") for place in range(SIZE)],
    )
    return connection


def found(connection: sqlite3.Connection, names: list[str]) -> list[tuple[object, ...]]:
    keys = [(7, name) for name in names]
    return matching(connection, "items", "t.id, t.place", (("query", "id"),), keys)


def test_a_few_are_found_without_reading_all() -> None:
    connection, steps = a_query(), 0
    some = found(connection, ["item 900", "no such", "item 3"])
    assert sorted(some) == [("item 3", 3), ("item 900", 900)]

    def count() -> None:
        nonlocal steps
        steps += 1

    connection.set_progress_handler(count, 1)  # at every instruction of SQLite's machine
    names = [f"item {place}" for place in range(0, SIZE, 100)]
    assert len(found(connection, names)) == len(names)
    assert steps < SIZE
