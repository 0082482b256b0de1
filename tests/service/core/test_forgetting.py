"""A service that forgets: memory, store, replay, export and repair agree to the bit."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.environment.config import SettingsError
from ebrank.service.api import DeletionRequest
from ebrank.service.engine import Engine
from ebrank.service.learning.fitting import TrainingJob, gather
from ebrank.service.ops.repair import repair
from ebrank.service.ops.replay import replay
from ebrank.service.ops.transfer.exported import Exported
from ebrank.service.ops.transfer.exporting import export
from ebrank.service.ops.transfer.importing import import_store
from ebrank.service.store import open
from ebrank.service.store.base import Store
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.rows import reach
from ebrank.service.store.sqlite import SqliteStore
from ebrank.testing.histories import contents
from tests.service.scenes import (
    BOTH,
    DAY,
    START,
    Clock,
    Opened,
    click,
    clicked,
    counts,
    ids,
    items,
    played,
    ranked,
    settings,
    stored,
)

EVENTS: dict[str, Any] = {
    "half_life_days": 8.0,
    "behaviors": ["click=0.3", "purchase"],
    "negative": ["return"],
}


KEPT = {"retention_seconds": 10 * DAY}


async def live(engine: Engine, days: int, clock: Clock, seed: int = 0) -> None:
    """Live through some days with a random day's work on each, late feedback and roll-ups."""
    for query in "ab":
        await engine.put_items(query, items(6))
    chance = random.Random(seed)
    past: list[tuple[str, str]] = []
    for day in range(days):
        clock.now += DAY * chance.choice([0.3, 1.0, 2.5])
        for query in "ab":
            for number in range(chance.randint(0, 6)):
                answer = await ranked(engine, query, k=4, user=chance.choice(["u", None]))
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
async def test_memory_store_and_log_agree_to_the_bit(
    engine: Engine, store: Store, clock: Clock, opened: Opened, impressions: str
) -> None:
    await live(engine, 40, clock)
    for query in "ab":
        known = await engine._items.query(query, clock.now)
        state = await stored(store, query)
        assert 0 < state.epoch <= known.state.epoch
        reach(state, known.state.epoch)
        slots, outcomes = state.counts.shape[2], state.counts.shape[1]
        counted = np.zeros_like(known.counts)
        counted[:, :outcomes, :slots] = state.counts
        assert counted.tolist() == known.counts.tolist()
        assert counted[:, 0].sum() > 0
    await engine.close()
    before = await contents(store)
    assert (await replay(store)).equal
    await store.log.roll_up(clock.now - 3 * DAY)
    assert (await replay(store)).equal
    assert (await contents(store))["current"] == before["current"]
    clock.now += 5 * DAY
    await live(await opened(), 10, clock, seed=1)
    assert (await replay(store)).equal


@played(settings(events=EVENTS, store=KEPT))
async def test_a_store_that_forgets_is_exported_and_imported(
    engine: Engine, store: MemoryStore, clock: Clock, tmp_path: Path
) -> None:
    await live(engine, 30, clock)
    await store.log.roll_up(clock.now - DAY)
    await export(store, tmp_path / "export")
    assert (await replay(Exported(tmp_path / "export"))).equal
    await import_store(Exported(tmp_path / "export"), str(tmp_path / "store"))
    async with open(str(tmp_path / "store"), "read") as new:
        assert (await replay(new)).equal
        here, there = await contents(new), await contents(store)
        for part in ("current", "snapshot", "log"):
            assert here[part] == there[part]


@pytest.mark.slow
@played(settings(events=EVENTS, store=KEPT), on=BOTH)
async def test_an_item_that_is_deleted_fades_like_the_others(
    engine: Engine, store: Store, clock: Clock
) -> None:
    """Its name is gone, also from the log: nothing may hang on it."""
    await live(engine, 15, clock)
    await engine.delete(DeletionRequest("item", "i2"))
    await live(engine, 5, clock, seed=1)
    assert (await replay(store)).equal


@played(settings(events=EVENTS), count=1)
async def test_what_users_did_counts_half_after_the_half_life(
    engine: Engine, store: MemoryStore, clock: Clock
) -> None:
    for number in range(400):
        answer = await ranked(engine)
        if number % 4 == 0:
            await clicked(engine, answer, "i0")
    for half_lives, shown in ((1, 200), (2, 100), (6, 6), (40, 0)):
        clock.now = START + half_lives * 8 * DAY
        [item] = (await engine.query("q")).items
        assert item.shown == pytest.approx(shown, abs=4 * np.sqrt(shown / 2) + 0.5)
        assert item.clicks <= item.shown
    assert item.shown == 0
    assert item.relevance == pytest.approx(item.prior, rel=1e-14)  # one divides, one multiplies
    assert item.first_shown is not None
    state = await stored(store)
    assert state.counts[:, 0].sum() == 400  # nothing was written since


@played(settings(events=EVENTS | {"half_life_days": 0.25}), count=2)
async def test_late_feedback_on_what_is_forgotten_adds_nothing(
    engine: Engine, store: MemoryStore, clock: Clock
) -> None:
    answer = await ranked(engine)
    first, second = ids(answer)
    await clicked(engine, answer, first)
    clock.now += 29 * DAY
    late = [
        click("2", answer.ranking_id, first, "purchase"),
        click("3", answer.ranking_id, second),
        click("4", answer.ranking_id, second, "return"),
    ]
    assert (await engine.feedback(late)).accepted == 3
    assert set((await counts(engine)).values()) == {(0, 0)}
    assert (await replay(store)).equal


@played(count=2)
async def test_the_half_life_of_a_store_stays(
    engine: Engine, store: MemoryStore, clock: Clock, opened: Opened
) -> None:
    """Nothing is forgotten by default; it may begin later: from then on."""
    await ranked(engine)
    clock.now += 10_000 * DAY
    await ranked(engine)
    assert set((await counts(engine)).values()) == {(2, 0)}
    assert "half_life" not in await store.meta.all()
    await engine.close()
    clock.now += 1000 * DAY
    later = await opened(settings(events=EVENTS))
    await ranked(later)
    await later.close()
    state = await stored(store)
    assert (state.epoch, state.counts[:, 0].sum()) == (0, 6)
    for other in ("off", 9.0):
        with pytest.raises(SettingsError, match=r"a half-life of 8 days.*Set it to 8"):
            await opened(settings(events=EVENTS | {"half_life_days": other}))


@played(settings(events=EVENTS))
async def test_training_takes_all_queries_as_they_are_remembered_now(
    engine: Engine, store: MemoryStore, clock: Clock
) -> None:
    for query in "ab":
        await engine.put_items(query, items(2))
    for _ in range(100):
        await ranked(engine, "a", k=1, items=["i0"])
    clock.now += 16 * DAY
    await ranked(engine, "b", k=1, items=["i1"])
    job = TrainingJob(active=0, behaviors=tuple(EVENTS["behaviors"]))
    table = await gather(store, job)
    assert table is not None
    shown = table.stats.shown.tolist()
    assert shown[1:] == [0, 0, 1]
    assert shown[0] == pytest.approx(25, abs=15)


@played(settings(events=EVENTS), on=SqliteStore, start=time.time() - 30 * DAY, count=1)
async def test_a_repair_takes_back_epochs_of_a_clock_that_was_ahead(
    engine: Engine, store: SqliteStore, clock: Clock, tmp_path: Path
) -> None:
    async def shown() -> tuple[int, int]:
        async with open(str(tmp_path / "store"), "read") as store:
            assert (await replay(store)).equal
            state = await stored(store)
            return int(state.counts[:, 0].sum()), state.epoch

    for years in (0, 0, 5):
        clock.now += years * 365 * DAY
        for _ in range(100):
            await ranked(engine)
    await engine.close()
    await store.close()
    assert await shown() == (100, 365 * 5 // 2)
    await repair(str(tmp_path / "store"))
    count, epoch = await shown()
    assert epoch == 15  # quarters of eight days in thirty days
    assert count == pytest.approx(100 + 200 * 2 ** (-15 / 4), abs=15)
