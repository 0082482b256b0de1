"""What only a store in PostgreSQL does: crashes, stalls, elections, privileges, addresses."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import pytest

from ebrank.addons import postgresql
from ebrank.addons.postgresql import driver
from ebrank.addons.postgresql.database import Address
from ebrank.service.api import ItemIn
from ebrank.service.engine import Engine
from ebrank.service.ops.check import check
from ebrank.service.settings import Settings
from ebrank.service.store import Mode, Store, StoreError, open
from ebrank.service.store.records import RolledUp
from tests.postgres import Postgres, postgres
from tests.service.histories import event, fill, new_items, ranking
from tests.service.store.checking import state_of

PATIENCE_SECONDS = 60.0
T = TypeVar("T")


async def opened(url: str, mode: Mode = "serve") -> None:
    """Open a store and close it."""
    async with open(url, mode):
        pass


async def execute(database: Postgres, *statements: str) -> None:
    connection = await asyncpg.connect(Address(database.url()).dsn)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


async def test_servers_that_write_at_once_count_all_of_it_once(database: Postgres) -> None:
    url = database.url("at once")
    async with open(url) as one, open(url) as two, open(url) as three:
        for query in "pq":
            await one.items.put(query, new_items(*"abc"), 1.0)

        async def work(worker: int) -> None:
            store = (one, two, three)[worker % 3]
            for number in range(15):
                names = "pq" if number % 2 else "qp"  # in any order
                lists = [
                    ranking(f"r{worker}-{number}{query}", "abc", query=query) for query in names
                ]
                shared = ranking("r-shared", "abc", query="q")
                item, kind = "abc"[number % 3], f"k{number}"
                await store.log.write([*lists, event(f"e{number}", shared, item, kind, time=10.0)])

        await asyncio.gather(*(work(worker) for worker in range(6)))
        assert await three.log.roll_up(15.0) == RolledUp(180, 15)
        for query in "pq":
            for store in (one, two):
                assert (await state_of(store, query)).counts[:, 0].sum() == 3 * 90
        assert await two.log.length() == 0


async def test_servers_that_start_at_once_make_one_store(database: Postgres) -> None:
    async def begun(url: str) -> None:
        async with open(url) as store:
            await store.meta.settle({"a": "b"})

    for turn in range(4):
        await asyncio.gather(*(begun(database.url(f"at once {turn}")) for _ in range(6)))


async def test_first_items_that_come_at_once_are_all_stored(database: Postgres) -> None:
    url = database.url("first items")
    async with open(url) as one, open(url) as two:
        engines = [await Engine.open(store, Settings()) for store in (one, two)]
        items = [ItemIn("a", {"price": 1.0}), ItemIn("b", {"price": 2.0})]
        await asyncio.gather(*(engines[n % 2].put_items(f"q{n}", items) for n in range(8)))
        shared = [ItemIn("a", {"age": 1.0}), ItemIn("b", {"age": 2.0})]
        await asyncio.gather(*(engine.put_catalog(shared) for engine in engines))
        assert len(await one.items.queries()) == 8
        for engine in engines:
            await engine.close()


@pytest.fixture
def own() -> Iterator[Postgres]:
    """A database that a test may crash."""
    with postgres() as server:
        yield server


@pytest.mark.slow
async def test_a_crash_of_the_database_begins_an_incarnation(own: Postgres) -> None:
    async with open(own.url()) as store:
        await store.items.put("q", new_items(*"ab"), 1.0)
        await store.log.write([ranking("r1", "ab")], incarnation=0)
        await store.flush()
        own.stop("immediate")
        with pytest.raises(StoreError):
            await store.log.write([ranking("r2", "ab")], incarnation=0)
        with pytest.raises(StoreError):
            await store.flush()
        own.start()
        with pytest.raises(StoreError, match="send the request again"):
            await store.log.write([ranking("r3", "ab")], incarnation=0)
        assert store.incarnation == 1
        await store.log.write([ranking("r4", "ab")], incarnation=1)
        await store.flush()
        log = [entry.id async for entry in store.log.entries()]  # type: ignore[union-attr]
        assert log == ["r1", "r4"]


@pytest.mark.slow
async def test_a_flush_after_a_crash_does_not_claim_what_was_lost(own: Postgres) -> None:
    async with open(own.url()) as store:
        await store.items.put("q", new_items(*"ab"), 1.0)
        await store.flush()
        await store.log.write([ranking("r1", "ab")])
        own.stop("immediate")
        own.start()
        with pytest.raises(StoreError):
            await store.flush()
        await recovered(store)
        survived = await store.log.length()  # if the database had flushed it by itself
        again = "r2" if survived else "r1"  # as a client sends it
        await store.log.write([ranking(again, "ab")])
        await store.flush()
        assert await store.log.length() == survived + 1


async def once_noticed(call: Callable[[], Awaitable[T]]) -> T:
    """Return what a call returns once the store has noticed that its connections are lost."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await call()
            except StoreError:
                await asyncio.sleep(0.01)


async def recovered(store: Store) -> None:
    """Return when all connections of a store lead to a database that was started again."""
    for call in (store.log.length, lambda: store.meta.set({}), store.flush):
        await once_noticed(call)


@asynccontextmanager
async def stalled(database: Postgres) -> AsyncIterator[None]:
    """Keep the database from responding to those that are connected to it."""
    connection = await asyncpg.connect(Address(database.url()).dsn)
    rows = await connection.fetch(
        "SELECT pid FROM pg_stat_activity "
        "WHERE pid != pg_backend_pid() AND backend_type = 'client backend'"
    )
    await connection.close()
    for (pid,) in rows:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for (pid,) in rows:
            os.kill(pid, signal.SIGCONT)


async def give_up(call: Awaitable[object]) -> None:
    """Cancel a call that takes long, as a check of readiness does."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await call


async def seen_by_others(url: str) -> tuple[int, list[str]]:
    """Return the length of the log and the queries, as other connections see them."""
    async with open(url, "browse") as store:
        return await store.log.length(), await store.items.queries()


@pytest.mark.parametrize("cancelled", ["write", "read"])
async def test_writes_after_a_call_that_was_cancelled_are_committed(
    database: Postgres, cancelled: str
) -> None:
    url = database.url(f"cancelled {cancelled}")
    async with open(url) as store:
        for query in "pq":
            await store.items.put(query, new_items(*"ab"), 1.0)
        await store.items.queries()
        async with stalled(database):
            writes = cancelled == "write"
            await give_up(store.meta.set({"given": "up"}) if writes else store.items.tally())
        await store.log.write([ranking("r", "ab")])
        assert await store.deletions.query("p", "digest", 2.0) is not None
        await store.flush()
        assert await seen_by_others(url) == (1, ["q"])
        assert store.incarnation == int(writes)


async def test_a_commit_that_was_cancelled_begins_an_incarnation(database: Postgres) -> None:
    url = database.url("slow")
    async with open(url) as store:
        await store.items.put("q", new_items(*"ab"), 1.0)
        await execute(
            database,
            "CREATE FUNCTION slow.wait() RETURNS trigger LANGUAGE plpgsql "
            "AS 'BEGIN PERFORM pg_sleep(1); RETURN NULL; END'",
            "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON slow.meta "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow.wait()",
        )
        await give_up(store.meta.set({"given": "up"}))
        with pytest.raises(StoreError, match="Send the request again"):
            await store.flush()
        await store.log.write([ranking("r", "ab")])
        await store.flush()
        assert store.incarnation == 1
        assert await seen_by_others(url) == (1, ["q"])


async def test_a_write_that_waited_too_long_does_not_happen_later(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database.url("waited")
    async with open(url) as store:
        await store.items.put("q", new_items("a"), 1.0)
    monkeypatch.setattr(postgresql.database, "COMMAND_SECONDS", 2.0)
    holder = await asyncpg.connect(Address(url).dsn)
    async with open(url) as store:
        async with holder.transaction():
            await holder.execute("SELECT 1 FROM waited.queries FOR UPDATE")
            with pytest.raises(StoreError, match="TimeoutError"):
                await store.items.put("q", new_items("b"), 2.0)
        await store.items.put("q", new_items("c"), 3.0)
        assert list((await state_of(store)).ids) == ["a", "c"]
    await holder.close()


async def test_a_database_that_stalls_is_told_and_used_again_when_it_responds(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database.url("stalled")
    async with open(url) as store:
        await store.items.put("q", new_items(*"ab"), 1.0)
    monkeypatch.setattr(postgresql.database, "COMMAND_SECONDS", 2.0)
    async with open(url) as store:
        await asyncio.gather(store.items.queries(), store.flush())
        async with stalled(database):
            told = await asyncio.gather(
                store.meta.set({"given": "up"}),
                store.items.tally(),
                store.flush(),
                return_exceptions=True,
            )
        for problem in told:
            assert isinstance(problem, StoreError)
            assert "cannot be reached (TimeoutError)" in str(problem)
        await store.log.write([ranking("r", "ab")])
        await store.flush()
        assert await store.elected("train")
        assert await seen_by_others(url) == (1, ["q"])


async def test_a_new_store_whose_connection_is_lost_does_not_claim_to_be_complete(
    database: Postgres,
) -> None:
    url = database.url("lost")

    async def lost() -> None:
        async with open(url, "new") as store:
            await store.items.put("q", new_items(*"ab"), 1.0)
            async with stalled(database):
                await give_up(store.meta.set({"given": "up"}))

    with pytest.raises(StoreError, match="connection is closed"):
        await lost()
    with pytest.raises(StoreError, match="there is no store"):
        await opened(url, "read")


@pytest.mark.slow
async def test_flushed_writes_survive_a_crash_whatever_the_database_is_set_to(
    own: Postgres,
) -> None:
    url = own.url()
    await execute(
        own,
        "ALTER DATABASE postgres SET synchronous_commit = off",
        "ALTER SYSTEM SET wal_writer_delay = '10s'",
        "ALTER SYSTEM SET wal_writer_flush_after = '100MB'",
        "SELECT pg_reload_conf()",
    )
    async with open(url, "new") as store:
        await store.items.put("q", new_items(*"ab"), 1.0)
    async with open(url) as store:
        for number in range(20):
            await store.log.write([ranking(f"r{number}", "ab")])
            await store.flush()
        own.stop("immediate")
        own.start()
        await recovered(store)
    assert await seen_by_others(url) == (20, ["q"])


async def test_one_server_is_elected_and_another_takes_over(database: Postgres) -> None:
    url = database.url("elected")
    async with open(url) as stays:
        async with open(url) as leaves:
            assert await leaves.elected("train")
            assert await leaves.elected("train")
            assert not await stays.elected("train")
            assert await stays.elected("roll up")
        assert await stays.elected("train")
        async with open(database.url("elsewhere")) as other:
            assert await other.elected("train")
        await execute(
            database,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid != pg_backend_pid() AND backend_type = 'client backend'",
        )
        async with open(url) as next_one:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await next_one.elected("train"):  # connections end one by one
                    await asyncio.sleep(0.01)
            assert not await once_noticed(lambda: stays.elected("train"))


async def test_counts_that_no_log_gives_are_found(database: Postgres) -> None:
    async with open(database.url("impossible")) as store:
        await fill(store)
        await execute(database, "UPDATE impossible.evidence SET count = 99 WHERE outcome > 0")
        found = [fault.what for fault in await check(store, 1000.0)]
        assert any("has more clicks than impressions" in what for what in found)


async def test_servers_need_no_more_than_the_documented_privileges(database: Postgres) -> None:
    url = database.url("least")
    with pytest.raises(StoreError, match=r'role "server" does not exist'):
        await opened(database.url("least", user="server"))
    await opened(url)
    await execute(
        database,
        "CREATE ROLE server LOGIN",
        "GRANT USAGE ON SCHEMA least TO server",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA least TO server",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA least TO server",
    )
    async with open(database.url("least", user="server")) as store:
        await fill(store)
        await store.log.roll_up(1000.0)
        assert await store.elected("train")
        assert await store.faults() == []
    with pytest.raises(StoreError, match=r"permission denied.*docs/scale\.md"):
        await opened(database.url("another", user="server"))


async def test_an_address_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be reached") as told:
        await opened(f"postgresql://ann:secret@/shop?host={tmp_path}")
    assert "secret" not in str(told.value)


def test_a_missing_driver_is_told_with_the_command_that_installs_it() -> None:
    code = "import sys; sys.modules['asyncpg'] = None; from ebrank.cli import main; main()"
    command = [sys.executable, "-c", code, "store", "init", "postgresql://db.example/shop"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "run: pip install 'ebrank[postgresql]'" in done.stderr


async def entries(store: Store) -> int:
    size = await store.size()
    assert size is not None
    return size.entries


async def test_the_entries_of_a_log_are_known_before_the_database_has_estimated_them(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open(database.url("size")) as store:
        assert await entries(store) == 0
        await store.items.put("q", new_items(*"ab"), 1.0)
        lists = [ranking(f"r{number}", "ab") for number in range(7)]
        await store.log.write([*lists, event("e", lists[0], "a")])
        assert await entries(store) == 8
        monkeypatch.setattr(driver, "MOST_COUNTED", 3)  # more are estimated
        assert await entries(store) >= 4


async def test_a_query_that_is_being_written_to_does_not_expire(database: Postgres) -> None:
    url = database.url("idle")
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


async def test_a_list_of_a_query_that_is_deleted_while_it_is_read_is_not_found(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database.url("read and deleted")
    async with open(url) as store, open(url) as other:
        await store.items.put("q", new_items("a"), 1.0)
        await store.log.write([ranking("r", "a", query="q")])
        matching = driver.PostgresConnection.matching

        async def late(*given: Any, **named: Any) -> Any:  # noqa: ANN401 (as the connection's)
            monkeypatch.undo()  # only the first look for names is late
            await other.deletions.query("q", "digest", 2.0)
            return await matching(*given, **named)

        assert await store.log.ranking("r") is not None
        monkeypatch.setattr(driver.PostgresConnection, "matching", late)
        assert await store.log.ranking("r") is None
