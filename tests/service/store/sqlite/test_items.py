"""Items by their names: looked up, however many their query has."""

from __future__ import annotations

import sqlite3

from ebrank.service.store.sqlite.items import items_by_name
from ebrank.service.store.sqlite.schema import TABLES

SIZE = 1000


def a_query() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for table in TABLES:
        connection.execute(table)
    connection.executemany(
        "INSERT INTO items VALUES (7, ?, ?, 0, 1, NULL)",
        [(place, f"item {place}") for place in range(SIZE)],
    )
    return connection


def test_existing_items_are_found() -> None:
    found = items_by_name(a_query(), "id, place", 7, ["item 900", "no such", "item 3"])
    assert sorted(found) == [("item 3", 3), ("item 900", 900)]


def test_a_few_are_found_without_reading_all() -> None:
    connection, steps = a_query(), 0

    def count() -> None:
        nonlocal steps
        steps += 1

    connection.set_progress_handler(count, 1)  # at every instruction of SQLite's machine
    names = [f"item {place}" for place in range(0, SIZE, 100)]
    assert len(list(items_by_name(connection, "id, place", 7, names))) == len(names)
    assert steps < SIZE
