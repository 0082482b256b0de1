"""Retraction while servers run: memory, windows, feedback in flight, other servers, a kill."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from ebrank.client import Client
from ebrank.service.api import EventIn, RetractionRequest
from ebrank.service.core.problems import Problem
from ebrank.service.ops.check import check
from ebrank.service.ops.replay import replay
from ebrank.service.settings import Settings
from ebrank.service.store import Store, open
from ebrank.service.store.base import SALT, hashed
from ebrank.service.store.records import Wanted
from ebrank.service.store.retraction import AT_ONCE, retracted
from tests.cli.commands import answered, good, refused
from tests.postgres import Postgres
from tests.service.scenes import BOTH, Scene, click, ids, items, played, settings, stored
from tests.threaded import Threaded

WORTH = settings(events={"behaviors": ["click=0.3", "purchase"]})


@played(WORTH, on=BOTH, count=6)
async def test_a_users_lists_count_no_longer_and_nothing_comes_back(engine: Scene) -> None:
    kept = await engine.ranked(k=3, user="ann")
    await engine.clicked(kept, ids(kept)[0])
    before = await engine.counts()
    first = await engine.ranked(k=3, user="robot")
    second = await engine.ranked(k=3, offset=3, user="robot")  # the next page
    events = [
        click("1", first.ranking_id, ids(first)[0]),
        EventIn("2", first.ranking_id, ids(first)[0], "purchase"),
        click("3", second.ranking_id, ids(second)[1]),
    ]
    assert await engine.statuses(events) == ["accepted"] * 3
    counted = await engine.counts()
    plan = await engine.retract(RetractionRequest(user="robot"))
    assert (plan.applied, plan.proof, await engine.counts()) == (False, None, counted)
    assert (plan.queries, plan.rankings, plan.events) == (1, 2, 3)
    assert (plan.impressions, plan.outcomes) == (6, 2)
    done = await engine.retract(RetractionRequest(user="robot", apply=True))
    assert done.proof is not None
    assert (done.proof.kind, done.proof.rankings, done.proof.events) == ("retraction", 2, 3)
    assert await engine.counts() == before
    assert (await engine.deletions()).deletions == [done.proof]
    assert await engine.statuses(events) == ["duplicate"] * 3
    late = EventIn("4", second.ranking_id, ids(second)[0], "purchase")
    assert await engine.statuses([late]) == ["accepted"]
    assert await engine.counts() == before
    again = await engine.retract(RetractionRequest(user="robot", apply=True))
    assert (again.rankings, again.events, again.proof) == (0, 0, None)
    new = await engine.ranked(k=3, user="robot")  # it continues none of those
    assert (await engine.lists())[-1].continues is None
    assert await engine.clicked(new, ids(new)[0]) == 1
    assert await engine.sound()
    assert await check(engine.store, engine.clock.now) == []


@played(count=4, pair=True)
async def test_another_server_notices_before_it_counts_anything(engine: Scene) -> None:
    listed = await engine.other.ranked(user="ann")
    kept = await engine.other.ranked(user="bob")
    await engine.retract(RetractionRequest(ranking_id=listed.ranking_id, apply=True))
    # It still remembers the list, and what ann has seen.
    await engine.other.feedback([click("late", listed.ranking_id, "i0")])
    assert await engine.other.clicked(kept, "i1") == 1
    await engine.other.ranked(user="ann")
    counts = {f"i{at}": (2, int(at == 1)) for at in range(4)}
    assert await engine.other.counts() == await engine.counts() == counts
    assert await engine.sound()


@pytest.mark.parametrize(
    "request_", [RetractionRequest(), RetractionRequest(5.0, 4.0), RetractionRequest(1e12)]
)
@played(count=1)
async def test_a_request_must_say_what(engine: Scene, request_: RetractionRequest) -> None:
    with pytest.raises(Problem) as problem:
        await engine.retract(request_)
    assert problem.value.field == "since"


@pytest.mark.parametrize("clicks", [False, True])
@played(count=2, pair=True)
async def test_several_retractions_in_a_row_fail_no_request(engine: Scene, clicks: bool) -> None:
    users = ["ann", "bob", "cat"]
    for user in users:
        await engine.ranked(user=user)
    listed, write = await engine.ranked(), engine.store.log.write

    async def late(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        if users:
            await engine.other.retract(RetractionRequest(user=users.pop(), apply=True))
        return await write(*given, **named)

    engine.store.log.write = late
    if clicks:
        assert await engine.clicked(listed, "i0") == 1
    else:
        await engine.ranked()
    assert users == []
    assert await engine.counts() == {"i0": (2 - clicks, clicks), "i1": (2 - clicks, 0)}
    assert await engine.sound()


async def raced(store: Store) -> None:
    """Let several visitors use a server while lists of one of them are retracted."""
    engine = await Scene.open(store, Settings(), clock=time.time)
    names = [f"q{at}" for at in range(30)]
    for name in names:
        await engine.put_items(name, items(5))
    done = False

    async def visits(user: str) -> None:
        turn = 0
        while not done:
            turn += 1
            answer = await engine.ranked(names[turn % len(names)], k=3, user=f"{user}{turn // 40}")
            await asyncio.sleep(0)
            await engine.clicked(answer, *ids(answer)[: turn % 3])

    visitors = [asyncio.create_task(visits(user)) for user in ("ann", "robot", "bob")]
    started = time.time()
    for turn in range(4):
        await asyncio.sleep(0.1)
        given = {"user": f"robot{turn}"} if turn % 2 else {"since": started + turn * 0.1}
        await asyncio.gather(
            engine.retract(RetractionRequest(apply=True, **given)),
            engine.retract(RetractionRequest(user=f"ann{turn}", apply=True)),
            store.log.roll_up(started + 0.05 * turn),
        )
    done = True
    await asyncio.gather(*visitors)
    for name in names:
        live, state = await engine.live(name), await stored(store, name)
        assert live.counts.astype(int).tolist() == state.counts.tolist()
    await engine.close()
    assert (await replay(store)).equal
    assert await check(store, time.time()) == []


async def test_retraction_races_with_lists_and_clicks(tmp_path: Path, database: Postgres) -> None:
    for url in (str(tmp_path / "store"), database.url("raced")):
        async with open(url) as store:
            await raced(store)


@played(on=BOTH)
async def test_a_retraction_that_ends_early_leaves_a_sound_store_and_is_finished_by_the_next(
    engine: Scene,
) -> None:
    for at in range(12):
        await engine.put_items(f"q{at}", items(2))
        for user in ("ann", "robot"):
            await engine.clicked(await engine.ranked(f"q{at}", user=user), "i0")
    robots = Wanted(user=hashed("robot", engine.resources.meta[SALT]))
    plan = await engine.store.deletions.retractable(robots)
    async for names in retracted(engine.store.driver, robots, plan.queries, 1):
        assert len(names) == AT_ONCE
        break  # as if the server was killed
    assert sum(not entry.retracted for entry in await engine.lists()) == 24 - AT_ONCE
    assert await engine.replays()
    done = await engine.retract(RetractionRequest(user="robot", apply=True))
    assert done.proof is not None
    assert (done.proof.rankings, done.proof.queries) == (12 - AT_ONCE, 12 - AT_ONCE)
    assert sum(not entry.retracted for entry in await engine.lists()) == 12
    assert await engine.sound()


def test_the_command_says_what_would_change_and_then_changes_it(tmp_path: Path) -> None:
    with Threaded(tmp_path) as server, Client(server.url) as client:
        client.put_items("tea", {"a": [1.0], "b": [2.0]})
        for user in ("ann", "robot"):
            client.click(client.rank("tea", user=user), "a")
        robots = ("--user", "robot", "--apply")
        assert "another server" in refused("retract", tmp_path / "store", *robots)
        nobody = good("retract", server.url, "--asked-by", "leaked").stdout
        assert "Would take back 0 lists" in nobody
        done = answered("retract", server.url, *robots)
        assert (done["rankings"], done["events"], done["applied"]) == (1, 1, True)
        assert {item.id: item.shown for item in client.query("tea").items} == {"a": 1, "b": 1}
    order = ("retract", tmp_path / "store")
    assert good(*order, "--since", "2020-01-01").stdout == (
        "Would take back 1 lists and 1 events of 1 queries: 2 impressions and 1 outcomes.\n"
        "Nothing has changed. Add --apply to take them back.\n"
    )
    good(*order, "--query", "TEA", "--since", "2020-01-01T00:00Z", "--apply")
    assert "Would take back 0 lists" in good(*order, "--since", "2020-01-01").stdout
    for arguments, problem in (
        ((), "Give one of --since"),
        (("--since", "yesterday"), "'yesterday' is not a time"),
        (("--since", "2020-01-02", "--until", "2020-01-01"), "since must be before until"),
    ):
        assert problem in refused(*order, *arguments)
