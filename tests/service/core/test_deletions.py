"""What is deleted is gone: from lists, from memory, from the log, from the files."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from ebrank.client import Client
from ebrank.service.api import DeletionRequest, ItemIn, QueriesRequest
from ebrank.service.core.background import DOUBT_SECONDS
from ebrank.service.core.deletions import STAND_IN
from ebrank.service.core.problems import NotFound
from ebrank.service.learning.fitting import TrainingJob, gather
from ebrank.service.ops.check import check
from ebrank.service.ops.replay import replay
from ebrank.service.settings import Settings
from ebrank.service.store import open
from ebrank.service.store.sqlite import SqliteStore
from ebrank.service.store.sqlite.driver import SqliteDriver
from tests.cli.commands import answered, good, refused
from tests.service.scenes import BOTH, DAY, Scene, click, ids, items, played, settings
from tests.threaded import Threaded

ITEM, QUERY, USER = "item-Zanzibar-7", "query quokka 9", "ada.lovelace@example.org"


async def lived(engine: Scene, lists: int = 60) -> list[str]:
    """Serve lists of two queries, one of them to be deleted, and click; return ranking ids."""
    for query in (QUERY, "tea"):
        await engine.put_items(query, [*items(6), ItemIn(ITEM, [0.5, 0.25])])
    served = []
    for turn in range(lists):
        query = (QUERY, "tea")[turn % 2]
        answer = await engine.ranked(query, k=7, user=USER if turn % 3 else "other")
        await engine.clicked(answer, *ids(answer)[:3])
        served.append(answer.ranking_id)
    return served


@played(on=BOTH)
async def test_a_deleted_item_is_in_no_list_and_teaches_nothing(engine: Scene) -> None:
    served = await lived(engine)
    proof = await engine.delete(DeletionRequest("item", ITEM))
    assert (proof.kind, proof.queries) == ("item", 2)
    assert ITEM not in ids(await engine.ranked("tea", k=7, user=USER))
    view = await engine.query("tea")
    names = [item.id for item in view.items] + [item.id for item in view.withdrawn]
    assert ITEM not in names
    assert sum(name.startswith(STAND_IN) for name in names) == 1
    assert await engine.rejected(click("late", served[-1], ITEM)) == ["unknown_item"]
    with pytest.raises(NotFound, match="unknown item"):
        await engine.delete(DeletionRequest("item", ITEM))
    table = await gather(engine.store, TrainingJob(active=0))
    assert table is not None
    assert (~table.seen).sum() == 2, "stand-ins have no features to learn from"
    await engine.put_items("tea", [ItemIn(ITEM, [0.5, 0.25])])
    [fresh] = [item for item in (await engine.query("tea")).items if item.id == ITEM]
    assert (fresh.shown, fresh.clicks) == (0, 0)
    assert await engine.replays()
    assert await check(engine.store, 1e12) == []


@played(on=BOTH)
async def test_a_deleted_query_is_unknown_and_may_begin_anew(engine: Scene) -> None:
    served = await lived(engine)
    proof = await engine.delete(DeletionRequest("query", QUERY.upper()))  # names are normalized
    assert (proof.kind, proof.queries, proof.rankings, proof.events) == ("query", 1, 30, 6)
    with pytest.raises(NotFound):
        await engine.ranked(QUERY)
    assert await engine.rejected(click("late", served[0], "i1")) == ["unknown_ranking"]
    assert await engine.replays()
    await engine.put_items(QUERY, items(2))
    answer = await engine.ranked(QUERY, user=USER)
    assert sorted(ids(answer)) == ["i0", "i1"]
    assert {item.shown for item in (await engine.query(QUERY)).items} == {1}
    assert await engine.rejected(click("late", served[0], "i1")) == ["unknown_ranking"]
    assert await engine.replays()
    assert await check(engine.store, 1e12) == []


@played()
async def test_lists_of_a_deleted_user_count_as_those_of_nobody(engine: Scene) -> None:
    await lived(engine)
    before = await engine.query("tea")
    proof = await engine.delete(DeletionRequest("user", USER))
    assert (proof.kind, proof.rankings) == ("user", 40)
    assert await engine.query("tea") == before
    users = {getattr(entry, "user", None) async for entry in engine.store.log.entries()}
    assert len(users) == 2, "nobody, and the other user"
    again = await engine.delete(DeletionRequest("user", USER))
    assert (again.rankings, again.digest) == (0, proof.digest)
    listed = await engine.deletions()
    assert (listed.total, listed.deletions) == (2, [proof, again])


@played(on=SqliteStore)
async def test_a_deletion_while_others_rank(engine: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists, clicks and roll-ups go on while a query's log is removed in portions."""
    monkeypatch.setattr(SqliteDriver, "portion", 10)
    await lived(engine, lists=40)
    await engine.ranked(QUERY)  # it is in memory
    done = asyncio.Event()

    async def use() -> None:
        while not done.is_set():
            assert await engine.clicked(await engine.ranked("tea"), "i1") == 1
            with suppress(NotFound):
                answer = await engine.ranked(QUERY)
                assert answer.counted, "a deleted query is served from memory"
            await engine.store.log.roll_up(1e12)

    using = asyncio.create_task(use())
    await engine.delete(DeletionRequest("query", QUERY))
    done.set()
    await using
    assert await engine.replays()
    assert await check(engine.store, 1e12) == []


# --- files ---------------------------------------------------------------------------------------


def holding(folder: Path, name: str) -> list[str]:
    """Return the files that hold a text anywhere."""
    return [path.name for path in folder.iterdir() if name.encode() in path.read_bytes()]


async def filled(folder: Path) -> str:
    """Make a store; return the user as its log names one."""
    async with open(str(folder)) as store:
        engine = await Scene.open(store, Settings())
        await lived(engine, lists=300)
        await engine.close()
        entries = [entry async for entry in store.log.entries()]
        return str(entries[4].user) if hasattr(entries[4], "user") else ""


@pytest.mark.slow
def test_nothing_is_left_in_the_files_of_a_store(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    user = asyncio.run(filled(folder))
    assert user
    for name in (ITEM, QUERY, user):
        assert holding(folder, name) == ["log.db"], name
    for option, name in (("--user", USER), ("--item", ITEM), ("--query", QUERY)):
        assert name not in good("delete", folder, option, name).stdout
    for name in (ITEM, QUERY, USER, user):
        assert holding(folder, name) == [], name
    listed = answered("delete", folder, "--list")["deletions"]
    assert [one["kind"] for one in listed] == ["user", "item", "query"]
    refused("delete", folder, "--item", ITEM)

    async def sound() -> None:
        async with open(str(folder), "read") as store:
            assert (await replay(store)).equal
            assert await check(store, 1e12) == []

    asyncio.run(sound())


@pytest.mark.slow
def test_a_served_store_is_changed_through_its_server(tmp_path: Path) -> None:
    with Threaded(tmp_path) as server, Client(server.url) as client:
        client.put_items(QUERY, {ITEM: [1.0], "b": [2.0]})
        client.put_items("tea", {ITEM: [1.0], "b": [2.0]})
        client.rank(QUERY, user=USER)
        assert "another server" in refused("delete", tmp_path / "store", "--item", ITEM)
        [proof] = answered("delete", server.url, "--item", ITEM)["deletions"]
        assert proof["queries"] == 2
        good("delete", server.url, "--query", QUERY)
        assert [one.query for one in client.queries().queries] == ["tea"]
        assert client.deletions().total == 2
    done = good("delete", tmp_path / "store", "--vacuum")
    assert done.stdout == "The files contain no trace of what was deleted.\n"
    for name in (ITEM, QUERY, USER):
        assert holding(tmp_path / "store", name) == []


# --- listing -------------------------------------------------------------------------------------


@played()
async def test_queries_are_listed_and_found(engine: Scene) -> None:
    for name in ("Green Tea", "tea", "teapot", "coffee"):
        await engine.put_items(name, items(2))
    for request, expected, following in (
        (QueriesRequest(limit=3), ["coffee", "green tea", "tea"], "tea"),
        (QueriesRequest(cursor="tea", limit=3), ["teapot"], None),
        (QueriesRequest(prefix="TEA"), ["tea", "teapot"], None),
        (QueriesRequest(contains="Tea", limit=1), ["green tea"], "green tea"),
    ):
        page = await engine.queries(request)
        assert [(each.query, each.items) for each in page.queries] == [(n, 2) for n in expected]
        assert page.next == following


@pytest.mark.parametrize(
    ("kind", "name"), [("item", ITEM), ("query", QUERY), ("user", "somebody else")]
)
@played()
async def test_a_deletion_makes_nobody_see_a_list_for_the_first_time_again(
    engine: Scene, kind: str, name: str
) -> None:
    for query in ("tea", QUERY):
        await engine.put_items(query, [*items(3), ItemIn(ITEM, [0.5, 0.25])])
    first = ids(await engine.ranked("tea", user=USER))
    await engine.delete(msgspec.convert({"kind": kind, "name": name}, DeletionRequest))
    again = ids(await engine.ranked("tea", user=USER))
    assert again == [item for item in first if (kind, item) != ("item", ITEM)]
    assert {item.shown for item in (await engine.query("tea")).items} == {1}


@played()
async def test_what_a_user_has_seen_is_forgotten_with_the_user(engine: Scene) -> None:
    for query in ("tea", "coffee"):
        await engine.put_items(query, items(3))
        for user in (USER, "other"):
            await engine.ranked(query, user=user)
    windows = engine.stages.windows.cache
    assert len(windows) == 4
    await engine.delete(DeletionRequest("user", USER))
    assert len(windows) == 2
    await engine.ranked("tea", user=USER)
    assert {item.shown for item in (await engine.query("tea")).items} == {3}


@played()
async def test_a_query_added_again_has_been_seen_by_nobody(engine: Scene) -> None:
    """Wherever it was deleted: what users saw names items that it no longer has."""
    await engine.put_items("tea", items(4))
    await engine.ranked("tea", user=USER)
    await engine.store.deletions.query("tea", "digest", 0.0)  # by another server
    engine._queries.forget("tea")
    await engine.put_items("tea", items(4)[::-1])
    await engine.ranked("tea", user=USER)
    assert {item.shown for item in (await engine.query("tea")).items} == {1}


async def queries_left(engine: Scene) -> int:
    return len((await engine.queries(QueriesRequest())).queries)


@pytest.mark.parametrize("days", [None, 60.0])
@played(lambda days: settings(store={"expire_idle_days": days} if days else {}), on=SqliteStore)
async def test_queries_that_nobody_uses_expire_if_they_may(
    engine: Scene, days: float | None
) -> None:
    for at in range(30):
        await engine.ranked(f"query {at}", items=items(2))
    engine.clock.now += 45 * DAY
    listed = await engine.ranked("query 7")
    await engine._roll_up()
    assert await queries_left(engine) == 30
    for _ in range(16):
        engine.clock.now += DAY
        await engine._roll_up()
    assert await queries_left(engine) == (1 if days else 30)
    assert await engine.store.meta.get("expired") == ('{"queries": 29}' if days else None)
    assert await engine.clicked(listed, "i0") == 1
    if days:
        with pytest.raises(NotFound):  # not in memory either
            await engine.ranked("query 8")
    assert await engine.clicked(await engine.ranked("query 8", items=items(2)), "i0") == 1
    assert await engine.replays()
    assert await check(engine.store, engine.clock.now) == []


@pytest.mark.parametrize("suspended", [False, True])
@played(settings(store={"expire_idle_days": 60.0}), own_timer=True)
async def test_time_in_which_no_server_ran_is_no_idle_time(engine: Scene, suspended: bool) -> None:
    async def served(engine: Scene, days: int) -> int:
        for _ in range(days):
            engine.clock.now, engine.timer.now = engine.clock.now + DAY, engine.timer.now + DAY
            await engine.ranked("asked", items=items(2))
            await engine._roll_up()
        return await queries_left(engine)

    await engine.ranked("not asked", items=items(2))
    assert await served(engine, 50) == 2
    engine.clock.now += 100 * DAY
    if suspended:
        await engine.ranked("asked")
        engine.timer.now += DOUBT_SECONDS  # the clock is taken to be right
        assert await served(engine, 1) == 2
    await engine.close()
    later = await engine.opened()
    assert await served(later, 58) == 2
    assert await served(later, 5) == 1
