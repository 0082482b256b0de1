"""A service that forgets: memory, store, replay, export and repair agree to the bit."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.environment.config import SettingsError
from ebrank.service.api import DeletionRequest, RankRequest
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
from ebrank.testing.histories import bits, contents
from tests.service.scenes import (
    BOTH,
    START,
    Clock,
    click,
    ids,
    items,
    play,
    played,
    ranked,
    settings,
)
from tests.service.store.blocking import run

DAY = 86400.0
EVENTS: dict[str, Any] = {
    "half_life_days": 8.0,
    "behaviors": ["click=0.3", "purchase"],
    "negative": ["return"],
}


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store")


async def live(engine: Engine, days: int, clock: Clock, seed: int = 0) -> None:
    """Live through some days with a random day's work on each, late feedback and roll-ups."""
    chance = random.Random(seed)
    past: list[tuple[str, str]] = []
    for day in range(days):
        clock.now += DAY * chance.choice([0.3, 1.0, 2.5])
        for query in "ab":
            for number in range(chance.randint(0, 6)):
                asks = RankRequest(query, k=4, user=chance.choice(["u", None]))
                answer = await engine.rank(asks)
                past += [(answer.ranking_id, item) for item in ids(answer)]
                chosen = chance.choices(past[-60:], k=3)
                await engine.feedback(
                    [
                        click(
                            f"{seed} {day} {query} {number} {at}",
                            ranking,
                            item,
                            chance.choice(["click", "click", "purchase", "return"]),
                        )
                        for at, (ranking, item) in enumerate(chosen)
                    ]
                )
        if chance.random() < 0.2:
            await engine._roll_up()


@pytest.mark.slow
@pytest.mark.parametrize("impressions", ["served", "confirmed"])
def test_memory_store_and_log_agree_to_the_bit(store: Store, impressions: str) -> None:
    clock = Clock()
    chosen = settings(
        events=EVENTS | {"impressions": impressions}, store={"retention_seconds": 10 * DAY}
    )

    async def scene(engine: Engine) -> None:
        for query in "ab":
            await engine.put_items(query, items(6))
        await live(engine, 40, clock)
        for query in "ab":
            known = await engine._items.query(query, clock.now)
            state = await store.items.load(query)
            assert state is not None
            assert 0 < state.epoch <= known.state.epoch
            reach(state, known.state.epoch)
            slots, outcomes = state.counts.shape[2], state.counts.shape[1]
            stored = np.zeros_like(known.counts)
            stored[:, :outcomes, :slots] = state.counts
            assert stored.tolist() == known.counts.tolist()
            assert stored[:, 0].sum() > 0

    play(scene, chosen, store=store, clock=clock)
    before = run(contents(store))
    assert run(replay(store)).equal
    run(store.log.roll_up(clock.now - 3 * DAY))
    assert run(replay(store)).equal
    assert run(contents(store))["current"] == before["current"]
    clock.now += 5 * DAY
    play(lambda engine: live(engine, 10, clock, seed=1), chosen, store=store, clock=clock)
    assert run(replay(store)).equal


def test_a_store_that_forgets_is_exported_and_imported(tmp_path: Path) -> None:
    clock, store = Clock(), MemoryStore()

    async def scene(engine: Engine) -> None:
        for query in "ab":
            await engine.put_items(query, items(6))
        await live(engine, 30, clock)

    play(
        scene,
        settings(events=EVENTS, store={"retention_seconds": 10 * DAY}),
        store=store,
        clock=clock,
    )
    run(store.log.roll_up(clock.now - DAY))

    async def moved() -> None:
        await export(store, tmp_path / "export")
        assert (await replay(Exported(tmp_path / "export"))).equal
        await import_store(Exported(tmp_path / "export"), str(tmp_path / "store"))
        async with open(str(tmp_path / "store"), "read") as new:
            assert (await replay(new)).equal
            here, there = await contents(new), await contents(store)
            for part in ("current", "snapshot", "log"):
                assert here[part] == there[part]

    run(moved())


@pytest.mark.slow
@played(lambda store: settings(events=EVENTS, store={"retention_seconds": 10 * DAY}), on=BOTH)
async def test_an_item_that_is_deleted_fades_like_the_others(
    engine: Engine, store: Store, clock: Clock
) -> None:
    """Its name is gone, also from the log: nothing may hang on it."""
    for query in "ab":
        await engine.put_items(query, items(6))
    await live(engine, 15, clock)
    await engine.delete(DeletionRequest("item", "i2"))
    await live(engine, 5, clock, seed=1)
    await engine.close()
    assert (await replay(store)).equal


@played(settings(events=EVENTS), count=1)
async def test_what_users_did_counts_half_after_the_half_life(
    engine: Engine, store: MemoryStore, clock: Clock
) -> None:
    for number in range(400):
        answer = await ranked(engine)
        if number % 4 == 0:
            await engine.feedback([click(str(number), answer.ranking_id, "i0")])
    for half_lives, shown in ((1, 200), (2, 100), (6, 6), (40, 0)):
        clock.now = START + half_lives * 8 * DAY
        [item] = (await engine.query("q")).items
        assert item.shown == pytest.approx(shown, abs=4 * np.sqrt(shown / 2) + 0.5)
        assert item.clicks <= item.shown
    assert item.shown == 0
    assert item.relevance == pytest.approx(item.prior, rel=1e-14)  # one divides, one multiplies
    assert item.first_shown is not None
    await engine.close()
    state = await store.items.load("q")
    assert state is not None
    assert state.counts[:, 0].sum() == 400  # nothing was written since


@played(settings(events=EVENTS | {"half_life_days": 0.25}), count=2)
async def test_late_feedback_on_what_is_forgotten_adds_nothing(
    engine: Engine, store: MemoryStore, clock: Clock
) -> None:
    answer = await ranked(engine)
    first, second = ids(answer)
    await engine.feedback([click("1", answer.ranking_id, first)])
    clock.now += 29 * DAY
    late = [
        click("2", answer.ranking_id, first, "purchase"),
        click("3", answer.ranking_id, second),
        click("4", answer.ranking_id, second, "return"),
    ]
    assert (await engine.feedback(late)).accepted == 3
    for item in (await engine.query("q")).items:
        assert (item.shown, item.clicks) == (0, 0)
    await engine.close()
    assert (await replay(store)).equal


def test_the_half_life_of_a_store_stays() -> None:
    clock, store = Clock(), MemoryStore()

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(2))
        await ranked(engine)

    play(scene, store=store, clock=clock)  # it may begin later: from then on
    clock.now += 1000 * DAY
    play(scene, settings(events=EVENTS), store=store, clock=clock)
    state = run(store.items.load("q"))
    assert state is not None
    assert (state.epoch, state.counts[:, 0].sum()) == (0, 4)
    for other in (None, 9.0):
        with pytest.raises(SettingsError, match=r"a half-life of 8 days.*Set it to 8"):
            play(scene, settings(events=EVENTS | {"half_life_days": other or "off"}), store=store)


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
    await engine.close()
    job = TrainingJob(active=0, behaviors=tuple(EVENTS["behaviors"]))
    table = await gather(store, job)
    assert table is not None
    shown = table.stats.shown.tolist()
    assert shown[1:] == [0, 0, 1]
    assert shown[0] == pytest.approx(25, abs=15)


@played(count=2)
async def test_nothing_is_forgotten_by_default(
    engine: Engine, store: MemoryStore, clock: Clock
) -> None:
    await ranked(engine)
    clock.now += 10_000 * DAY
    await ranked(engine)
    assert [item.shown for item in (await engine.query("q")).items] == [2, 2]
    await engine.close()
    state = await store.items.load("q")
    assert state is not None
    assert bits(state)["epoch"] == 0
    assert "half_life" not in await store.meta.all()


def test_a_repair_takes_back_epochs_of_a_clock_that_was_ahead(tmp_path: Path) -> None:
    folder, clock = str(tmp_path / "store"), Clock(time.time() - 30 * DAY)

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(1))
        for years in (0, 0, 5):
            clock.now += years * 365 * DAY
            for _ in range(100):
                await ranked(engine)

    async def shown() -> tuple[int, int]:
        async with open(folder, "read") as store:
            assert (await replay(store)).equal
            state = await store.items.load("q")
            assert state is not None
            return int(state.counts[:, 0].sum()), state.epoch

    store = SqliteStore(folder)
    play(scene, settings(events=EVENTS), store=store, clock=clock)
    run(store.close())
    assert run(shown()) == (100, 365 * 5 // 2)
    run(repair(folder))
    count, epoch = run(shown())
    assert epoch == 15  # quarters of eight days in thirty days
    assert count == pytest.approx(100 + 200 * 2 ** (-15 / 4), abs=15)
