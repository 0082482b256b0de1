"""A service that forgets: memory, store, replay and copies agree to the bit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.environment.config import SettingsError
from ebrank.service.api import DeletionRequest
from ebrank.service.learning.fitting import TrainingJob, gather
from ebrank.service.ops.copying import copy_store
from ebrank.service.store.rows import reach
from ebrank.service.store.sqlite import SqliteStore
from tests.service.histories import contents
from tests.service.scenes import (
    BOTH,
    DAY,
    START,
    Clock,
    Scene,
    click,
    ids,
    items,
    played,
    settings,
)

EVENTS: dict[str, Any] = {
    "half_life_days": 8.0,
    "behaviors": ["click=0.3", "purchase"],
    "negative": ["return"],
}


KEPT = {"retention_seconds": 10 * DAY}


async def live(engine: Scene, days: int, clock: Clock, seed: int = 0) -> None:
    """Live through some days with a random day's work on each, late feedback and roll-ups."""
    for query in "ab":
        await engine.put_items(query, items(6))
    chance = random.Random(seed)
    past: list[tuple[str, str]] = []
    for day in range(days):
        clock.now += DAY * chance.choice([0.3, 1.0, 2.5])
        for query in "ab":
            for number in range(chance.randint(0, 6)):
                answer = await engine.ranked(query, k=4, user=chance.choice(["u", None]))
                past += [(answer.ranking_id, item) for item in ids(answer)]
                events = []
                for at, (ranking, item) in enumerate(chance.choices(past[-60:], k=3)):
                    kind = chance.choice(["click", "click", "purchase", "return"])
                    events.append(click(f"{seed} {day} {query} {number} {at}", ranking, item, kind))
                await engine.feedback(events)
        if chance.random() < 0.2:
            await engine._roll_up()


@pytest.mark.slow
@pytest.mark.parametrize("impressions", ["served", "confirmed"])
@played(
    lambda impressions: settings(events=EVENTS | {"impressions": impressions}, store=KEPT), on=BOTH
)
async def test_memory_store_and_log_agree_to_the_bit(engine: Scene, impressions: str) -> None:
    await live(engine, 40, engine.clock)
    for query in "ab":
        known = await engine._items.query(query, engine.clock.now)
        state = await engine.stored(query)
        assert 0 < state.epoch <= known.state.epoch
        reach(state, known.state.epoch)
        slots, outcomes = state.counts.shape[2], state.counts.shape[1]
        counted = np.zeros_like(known.counts)
        counted[:, :outcomes, :slots] = state.counts
        assert counted.tolist() == known.counts.tolist()
        assert counted[:, 0].sum() > 0
    await engine.close()
    before = await contents(engine.store)
    assert await engine.replays()
    await engine.store.log.roll_up(engine.clock.now - 3 * DAY)
    assert await engine.replays()
    assert (await contents(engine.store))["current"] == before["current"]
    engine.clock.now += 5 * DAY
    later = await engine.opened()
    await live(later, 10, engine.clock, seed=1)
    assert await engine.replays()
    await later.delete(DeletionRequest("item", "i2"))  # its name is gone: nothing may hang on it
    await live(later, 5, engine.clock, seed=2)
    assert await engine.replays()


@played(settings(events=EVENTS, store=KEPT), on=SqliteStore)
async def test_a_store_that_forgets_is_copied(engine: Scene, tmp_path: Path) -> None:
    await live(engine, 30, engine.clock)
    await engine.store.log.roll_up(engine.clock.now - DAY)
    assert not (await copy_store(str(engine.store.url), str(tmp_path / "copy"))).left_out


@played(settings(events=EVENTS), count=1)
async def test_what_users_did_counts_half_after_the_half_life(engine: Scene) -> None:
    for number in range(400):
        answer = await engine.ranked()
        if number % 4 == 0:
            await engine.clicked(answer, "i0")
    for half_lives, shown in ((1, 200), (2, 100), (6, 6), (40, 0)):
        engine.clock.now = START + half_lives * 8 * DAY
        [item] = (await engine.query("q")).items
        assert item.shown == pytest.approx(shown, abs=4 * np.sqrt(shown / 2) + 0.5)
        assert item.clicks <= item.shown
    assert item.shown == 0
    assert item.relevance == pytest.approx(item.prior, rel=1e-14)  # one divides, one multiplies
    assert item.first_shown is not None
    state = await engine.stored()
    assert state.counts[:, 0].sum() == 400  # nothing was written since


@played(settings(events=EVENTS | {"half_life_days": 0.25}), count=2)
async def test_late_feedback_on_what_is_forgotten_adds_nothing(engine: Scene) -> None:
    answer = await engine.ranked()
    first, second = ids(answer)
    await engine.clicked(answer, first)
    engine.clock.now += 29 * DAY
    late = [
        click("2", answer.ranking_id, first, "purchase"),
        click("3", answer.ranking_id, second),
        click("4", answer.ranking_id, second, "return"),
    ]
    assert (await engine.feedback(late)).accepted == 3
    assert set((await engine.counts()).values()) == {(0, 0)}
    assert await engine.replays()


@played(count=2)
async def test_the_half_life_of_a_store_stays(engine: Scene) -> None:
    """Nothing is forgotten by default; it may begin later: from then on."""
    await engine.ranked()
    engine.clock.now += 10_000 * DAY
    await engine.ranked()
    assert set((await engine.counts()).values()) == {(2, 0)}
    assert "half_life" not in await engine.store.meta.all()
    await engine.close()
    engine.clock.now += 1000 * DAY
    later = await engine.opened(settings(events=EVENTS))
    await later.ranked()
    await later.close()
    state = await engine.stored()
    assert (state.epoch, state.counts[:, 0].sum()) == (0, 6)
    for other in ("off", 9.0):
        with pytest.raises(SettingsError, match=r"a half-life of 8 days.*Set it to 8"):
            await engine.opened(settings(events=EVENTS | {"half_life_days": other}))


@played(settings(events=EVENTS))
async def test_training_takes_all_queries_as_they_are_remembered_now(engine: Scene) -> None:
    for query in "ab":
        await engine.put_items(query, items(2))
    for _ in range(100):
        await engine.ranked("a", k=1, items=["i0"])
    engine.clock.now += 16 * DAY
    await engine.ranked("b", k=1, items=["i1"])
    job = TrainingJob(active=0, behaviors=tuple(EVENTS["behaviors"]))
    table = await gather(engine.store, job)
    assert table is not None
    shown = table.stats.shown.tolist()
    assert shown[1:] == [0, 0, 1]
    assert shown[0] == pytest.approx(25, abs=15)
