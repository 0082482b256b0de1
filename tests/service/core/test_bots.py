from __future__ import annotations

import msgspec
import pytest

from ebrank.service.api import RankRequest
from ebrank.service.engine import Engine
from ebrank.service.ops.replay import replay
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, NewItem, RankingEntry
from tests.service.faulty import FaultyStore
from tests.service.scenes import (
    START,
    Clock,
    click,
    ids,
    items,
    play,
    played,
    ranked,
    settings,
    statuses,
)
from tests.service.store.blocking import run

MINUTE = START // 60.0 * 60.0


async def counted(engine: Engine, query: str) -> tuple[int, int]:
    """Return the impressions and clicks of all items."""
    found = (await engine.query(query)).items
    return sum(item.shown for item in found), sum(item.clicks for item in found)


@pytest.mark.parametrize("impressions", ["served", "confirmed"])
@pytest.mark.parametrize("visitor", ["user", "session"])
def test_lists_beyond_the_rate_count_nothing(visitor: str, impressions: str) -> None:
    store, clock = MemoryStore(), Clock(MINUTE)

    async def ask(engine: Engine, number: int, who: str = "crawler") -> str:
        asks = {"query": f"q{number}", visitor: who}
        answer = await engine.rank(msgspec.convert(asks, RankRequest))
        kinds = ("impression", "click")
        events = [
            click(f"{answer.ranking_id}{kind}", answer.ranking_id, "i0", kind) for kind in kinds
        ]
        assert statuses(await engine.feedback(events)) == ["accepted"] * 2
        return answer.ranking_id

    async def scene(engine: Engine) -> None:
        seen: list[str] = []
        engine.bots.on_bot = seen.append
        for number in range(8):
            await engine.put_items(f"q{number}", items(2))
        for number in range(5):
            await ask(engine, number)
        await ask(engine, 5, "a person")
        shows = 1 if impressions == "confirmed" else 2
        found = [await counted(engine, f"q{number}") for number in range(6)]
        assert found == [(shows, 1)] * 3 + [(0, 0)] * 2 + [(shows, 1)]
        assert seen == ["list", "event", "event"] * 2
        bots = (await engine.insights()).bots
        assert (bots.lists, bots.events) == (2, 4)
        clock.now += 60.0  # still one: it was over the limit a minute ago
        late = await ask(engine, 6)
        clock.now += 60.0  # a person again, but not what was the bot's
        engine.resources.recent.pop(late)
        assert (await engine.feedback([click("late", late, "i1")])).accepted == 1
        assert await counted(engine, "q6") == (0, 0)
        await ask(engine, 7)
        assert await counted(engine, "q7") == (shows, 1)

    chosen = settings(
        bots={"lists_per_minute": 3, "visitor": visitor}, events={"impressions": impressions}
    )
    play(scene, chosen, store=store, clock=clock)
    log = list(run(store.log.entries()))
    assert [entry.bot for entry in log if isinstance(entry, RankingEntry)] == [
        *[False] * 3,
        *[True] * 2,
        False,
        True,
        False,
    ]
    assert sum(entry.bot for entry in log if isinstance(entry, EventEntry)) == 7
    assert run(replay(store)).equal


@played(settings(bots={"events_per_minute": 4}), start=MINUTE, count=6)
async def test_events_beyond_the_rate_count_nothing(engine: Engine, store: MemoryStore) -> None:
    answer = await ranked(engine, user="u")
    other = await ranked(engine, user="somebody")
    events = [click(name, answer.ranking_id, name) for name in ids(answer)]
    assert statuses(await engine.feedback(events)) == ["accepted"] * 6
    assert statuses(await engine.feedback([click("o", other.ranking_id, "i0")])) == ["accepted"]
    assert await counted(engine, "q") == (12, 5)
    assert (await engine.insights()).totals.clicks == 5
    await ranked(engine, user="u", items=["i0", "i1"])  # a bot's list by now
    assert await counted(engine, "q") == (12, 5)
    await engine.close()
    assert (await replay(store)).equal


@played(settings(bots={"events_per_minute": 6}), on=FaultyStore, start=MINUTE, count=6)
async def test_events_sent_again_do_not_make_a_bot(
    engine: Engine, store: FaultyStore, clock: Clock
) -> None:
    answer = await ranked(engine, user="u")
    *first, last = [click(name, answer.ranking_id, name) for name in ids(answer)]
    store.full = True
    for _ in range(2):
        with pytest.raises(StoreError):
            await engine.feedback(first)
    store.full = False
    assert statuses(await engine.feedback(first)) == ["accepted"] * 5
    assert statuses(await engine.feedback(first)) == ["duplicate"] * 5
    assert statuses(await engine.feedback([last])) == ["accepted"]
    assert await counted(engine, "q") == (6, 6)
    clock.now += 60.0
    await ranked(engine, user="u", items=["i0"])
    assert await counted(engine, "q") == (7, 6)


@played(settings(bots={"lists_per_minute": 1}), start=MINUTE, count=2)
async def test_a_list_that_is_made_again_counts_once_for_its_visitor(
    engine: Engine, store: MemoryStore, clock: Clock
) -> None:
    await ranked(engine)
    await store.deletions.query("q", "digest", clock.now)  # by another server
    await store.items.put("q", [NewItem("i0", (1.0, 1.0))], clock.now)
    await ranked(engine, user="u")  # which notices that it is another query
    assert await counted(engine, "q") == (1, 0)


@played(count=1)
async def test_nobody_is_a_bot_unless_a_rate_is_set(engine: Engine) -> None:
    for number in range(200):
        await ranked(engine, user="u", items=["i0"], explore=number % 2 == 0)
    bots = (await engine.insights()).bots
    assert (bots.lists, bots.events) == (0, 0)
