"""A clock that is set back: log times stand still, everything else goes on, and it is told."""

from __future__ import annotations

import logging

import pytest

from ebrank.service.api import RankRequest
from ebrank.service.core.clock import MonotoneClock
from ebrank.service.core.engine import Engine
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import RankingEntry
from tests.service.scenes import START, Clock, click, items, play, settings
from tests.service.store.blocking import run


def test_a_clock_behind_the_log_is_told_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    now = MonotoneClock(clock, last=START)
    assert (now(), now.lag) == (START, 0.0)
    clock.now -= 4.0  # set right by a little
    assert now() == START
    assert not caplog.messages
    for _ in range(2):
        clock.now = START - 3600.0
        assert (now(), now(), now.lag) == (START, START, 3600.0)
        clock.now = START
        now()
    told = "the clock is 3600 s behind the log"
    assert [message.startswith(told) for message in caplog.messages] == [True, True]


def test_a_store_ahead_of_the_clock_is_told_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()

    async def before(engine: Engine) -> None:
        await engine.put_items("q", items(2))

    async def after(engine: Engine) -> None:
        with caplog.at_level(logging.WARNING):
            await engine.start()
        assert engine.clock_lag == 86400.0

    play(before, store=store)
    play(after, store=store, clock=Clock(START - 86400.0))
    assert "86400 s behind the log" in caplog.text


def test_windows_surveys_and_training_go_on_when_the_clock_is_set_back() -> None:
    clock, timer, store = Clock(), Clock(0.0), MemoryStore()

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(6))
        first = await engine.rank(RankRequest("q", k=2, user="u"))
        await engine.feedback([click("e", first.ranking_id, first.items[0].id)])
        seen = await engine.insights()
        clock.now -= 86400.0
        timer.now += 9.0
        again = await engine.rank(RankRequest("q", k=2, user="u"))
        assert [item.id for item in again.items] == [item.id for item in first.items]
        await engine.rank(RankRequest("q", k=6))
        kept = await engine.insights()
        assert kept.calibration == seen.calibration  # not yet looked at again
        assert kept.training.next_time == START + 1.0
        timer.now += 2.0
        later = await engine.rank(RankRequest("q", k=2, user="u"))
        assert [item.id for item in later.items] != [item.id for item in first.items]
        assert engine._training.due()
        assert len((await engine.insights()).calibration) > len(seen.calibration)

    chosen = settings(
        ranking={"window": 10.0},
        training={"every_seconds": 10, "after_events": 0},
        insights={"refresh_seconds": 10.0},
    )
    play(scene, chosen, store=store, clock=clock, timer=timer)
    times = {entry.time for entry in run(store.log.entries()) if isinstance(entry, RankingEntry)}
    assert times == {START}
