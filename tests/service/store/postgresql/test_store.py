"""What a store in PostgreSQL tells about itself."""

from __future__ import annotations

import asyncio

import pytest

from ebrank.service.store import Store, open
from ebrank.service.store.postgresql import driver as module
from ebrank.service.store.postgresql.database import Address
from ebrank.testing.histories import event, new_items, ranking
from tests.postgres import Postgres


async def entries(store: Store) -> int:
    size = await store.size()
    assert size is not None
    return size.entries


def test_the_entries_of_a_log_are_known_before_the_database_has_estimated_them(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with open(database.url("size")) as store:
            assert await entries(store) == 0
            await store.items.put("q", new_items(*"ab"), 1.0)
            lists = [ranking(f"r{number}", "ab") for number in range(7)]
            await store.log.write([*lists, event("e", lists[0], "a")])
            assert await entries(store) == 8
            monkeypatch.setattr(module, "MOST_COUNTED", 3)  # more are estimated
            assert await entries(store) >= 4

    asyncio.run(scene())


def test_a_query_that_is_being_written_to_does_not_expire(database: Postgres) -> None:
    url = database.url("idle")

    async def scene() -> None:
        async with open(url) as store:
            for query in ("idle", "busy"):
                await store.items.put(query, new_items(*"ab"), 1.0)
            writer = await Address(url).connected()
            async with writer.transaction():
                await writer.execute("UPDATE queries SET used = 9 WHERE name = 'busy'")
                expired = [query async for query in store.deletions.expire(5.0, 9)]
            await writer.close()
            assert expired == ["idle"]
            assert [query async for query in store.deletions.expire(5.0, 9)] == []
            assert await store.items.queries() == ["busy"]

    asyncio.run(scene())
