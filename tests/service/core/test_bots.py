from __future__ import annotations

import pytest

from ebrank.service.store.base import StoreError
from ebrank.service.store.records import NewItem
from tests.service.faulty import FaultyStore
from tests.service.scenes import START, Scene, click, ids, items, played, settings

MINUTE = START // 60.0 * 60.0


async def counted(engine: Scene, query: str = "q") -> tuple[int, int]:
    """Return the impressions and clicks of all items."""
    shown, clicks = zip(*(await engine.counts(query)).values(), strict=True)
    return sum(shown), sum(clicks)


@pytest.mark.parametrize("impressions", ["served", "confirmed"])
@pytest.mark.parametrize("visitor", ["user", "session"])
@played(
    lambda visitor, impressions: settings(
        bots={"lists_per_minute": 3, "visitor": visitor}, events={"impressions": impressions}
    ),
    start=MINUTE,
)
async def test_lists_beyond_the_rate_count_nothing(
    engine: Scene, visitor: str, impressions: str
) -> None:
    async def ask(number: int, who: str = "crawler") -> str:
        answer = await engine.ranked(f"q{number}", **{visitor: who})
        name = answer.ranking_id
        events = [click(f"{name}{kind}", name, "i0", kind) for kind in ("impression", "click")]
        assert await engine.statuses(events) == ["accepted"] * 2
        return name

    seen: list[str] = []
    engine.bots.on_bot = seen.append
    for number in range(8):
        await engine.put_items(f"q{number}", items(2))
    for number in range(5):
        await ask(number)
    await ask(5, "a person")
    shows = 1 if impressions == "confirmed" else 2
    sums = [await counted(engine, f"q{number}") for number in range(6)]
    assert sums == [(shows, 1)] * 3 + [(0, 0)] * 2 + [(shows, 1)]
    assert seen == ["list", "event", "event"] * 2
    bots = (await engine.insights()).bots
    assert (bots.lists, bots.events) == (2, 4)
    engine.clock.now += 60.0  # still one: it was over the limit a minute ago
    late = await ask(6)
    engine.clock.now += 60.0  # a person again, but not what was the bot's
    engine.resources.recent.pop(late)
    assert (await engine.feedback([click("late", late, "i1")])).accepted == 1
    assert await counted(engine, "q6") == (0, 0)
    await ask(7)
    assert await counted(engine, "q7") == (shows, 1)
    assert [int(entry.bot) for entry in await engine.lists()] == [0, 0, 0, 1, 1, 0, 1, 0]
    assert sum(entry.bot for entry in await engine.events()) == 7
    assert await engine.replays()


@played(settings(bots={"events_per_minute": 4}), start=MINUTE, count=6)
async def test_events_beyond_the_rate_count_nothing(engine: Scene) -> None:
    answer = await engine.ranked(user="u")
    other = await engine.ranked(user="somebody")
    events = [click(name, answer.ranking_id, name) for name in ids(answer)]
    assert await engine.statuses(events) == ["accepted"] * 6
    assert await engine.statuses([click("o", other.ranking_id, "i0")]) == ["accepted"]
    assert await counted(engine) == (12, 5)
    assert (await engine.insights()).totals.clicks == 5
    await engine.ranked(user="u", items=["i0", "i1"])  # a bot's list by now
    assert await counted(engine) == (12, 5)
    assert await engine.replays()


@played(settings(bots={"events_per_minute": 6}), on=FaultyStore, start=MINUTE, count=6)
async def test_events_sent_again_do_not_make_a_bot(engine: Scene) -> None:
    answer = await engine.ranked(user="u")
    *first, last = [click(name, answer.ranking_id, name) for name in ids(answer)]
    engine.store.full = True
    for _ in range(2):
        with pytest.raises(StoreError):
            await engine.feedback(first)
    engine.store.full = False
    assert await engine.statuses(first) == ["accepted"] * 5
    assert await engine.statuses(first) == ["duplicate"] * 5
    assert await engine.statuses([last]) == ["accepted"]
    assert await counted(engine) == (6, 6)
    engine.clock.now += 60.0
    await engine.ranked(user="u", items=["i0"])
    assert await counted(engine) == (7, 6)


@played(settings(bots={"lists_per_minute": 1}), start=MINUTE, count=2)
async def test_a_list_that_is_made_again_counts_once_for_its_visitor(engine: Scene) -> None:
    await engine.ranked()
    await engine.store.deletions.query("q", "digest", engine.clock.now)  # by another server
    await engine.store.items.put("q", [NewItem("i0", (1.0, 1.0))], engine.clock.now)
    await engine.ranked(user="u")  # which notices that it is another query
    assert await counted(engine) == (1, 0)


@played(count=1)
async def test_nobody_is_a_bot_unless_a_rate_is_set(engine: Scene) -> None:
    for number in range(200):
        await engine.ranked(user="u", items=["i0"], explore=number % 2 == 0)
    bots = (await engine.insights()).bots
    assert (bots.lists, bots.events) == (0, 0)
