"""The engine's answers, and its clock: log times never go back while everything else goes on."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank import BehaviorStats, EBRanker
from ebrank.service.api import ItemIn
from ebrank.service.core.background import LogClock
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.store.sqlite import SqliteStore
from tests.service.scenes import DAY, START, Clock, Scene, click, ids, items, played, settings

PAPERS = settings(ranking={"policy": "ebrank"})


@played(PAPERS, on=SqliteStore)
async def test_a_log_replayed_through_the_library_gives_the_same_scores(engine: Scene) -> None:
    """The service ranks as `EBRanker` would after `BehaviorStats.record` of every session."""
    features = np.array([item.features for item in items(12, width=3)], np.float32)
    stats, ranker = BehaviorStats.zeros(12, slots=5), EBRanker("ebrank", epsilon=20.0)
    rng = np.random.default_rng(3)
    await engine.put_items("q", items(12, width=3))
    keys = (await engine._items.query("q", 0.0)).tie_keys
    for _ in range(60):
        answer = await engine.ranked(k=5)
        expected = ranker.rank(features, stats, k=5, tie_keys=keys)
        rows = [int(name[1:]) for name in ids(answer)]
        assert rows == expected.order.tolist()
        assert [item.score for item in answer.items] == expected.scores.tolist()
        liked = rng.random(5) < 0.3
        if liked.any():
            await engine.clicked(answer, *np.array(ids(answer))[liked].tolist())
        stats.record(expected.order, liked)
    state = await engine.stored()
    np.testing.assert_array_equal(state.counts, stats.counts)


@played(count=5)
async def test_some_candidates_only_and_features_on_the_fly(engine: Scene) -> None:
    answer = await engine.ranked(items=["i1", "i3", "i1"])
    assert sorted(ids(answer)) == ["i1", "i3"]
    answer = await engine.ranked(items=["i4", ItemIn("new", [0.0, 1.0])])
    assert sorted(ids(answer)) == ["i4", "new"]
    assert (await engine.query("q")).items[-1].id == "new"
    with pytest.raises(Problem, match="'gone', 'lost'"):
        await engine.ranked(items=["gone", "i1", "lost"])
    with pytest.raises(Problem, match="'gone'"):
        await engine.ranked(items=["gone", ItemIn("late", [0.0, 1.0])])
    assert "late" not in ids(await engine.query("q"))
    with pytest.raises(Problem, match="'gone'"):
        await engine.ranked("unheard of", items=["gone"])
    assert ids(await engine.ranked("other", items=[ItemIn("x", [1.0, 1.0])])) == ["x"]


@played(count=3)
async def test_withdrawn_items_leave_the_list_and_keep_their_history(engine: Scene) -> None:
    answer = await engine.ranked()
    assert (await engine.withdraw("q", "i1")).withdrawn
    assert not (await engine.withdraw("q", "i1")).withdrawn
    assert "i1" not in ids(await engine.ranked())
    with pytest.raises(Problem, match="'i1'"):
        await engine.ranked(items=["i1"])
    # a click on a list from before still counts
    assert (await engine.feedback([click("e", answer.ranking_id, "i1")])).accepted == 1
    view = await engine.query("q")
    assert [one.id for one in view.items] == ["i0", "i2"]
    assert [(one.id, one.shown, one.clicks) for one in view.withdrawn] == [("i1", 1, 1)]
    await engine.put_items("q", [ItemIn("i1", [0.5, 0.5])])
    back = {one.id: one for one in (await engine.query("q")).items}
    assert back["i1"].clicks == 1


@played()
async def test_unknown_names_are_reported(engine: Scene) -> None:
    for call in (engine.ranked("no"), engine.query("no"), engine.withdraw("no", "x")):
        with pytest.raises(NotFound, match="'no'"):
            await call
    await engine.put_items("q", items(1))
    with pytest.raises(NotFound, match="no item 'x'"):
        await engine.withdraw("q", "x")
    with pytest.raises(NotFound, match="model 3"):
        await engine.activate(3)
    assert (await engine.put_items("empty", [])).candidates == 0


@played(count=1)
async def test_a_query_without_candidates_has_an_empty_list(engine: Scene) -> None:
    await engine.withdraw("q", "i0")
    answer = await engine.ranked(explain=True)
    assert answer.items == []
    assert (await engine.query("q")).items == []
    await engine.insights()


@played(count=2)
async def test_users_are_hashed_in_the_log(engine: Scene) -> None:
    await engine.ranked(user="alice@example.org")
    await engine.ranked(user="alice@example.org")
    users = [entry.user for entry in await engine.lists()]
    assert users[0] == users[1]
    assert users[0] is not None
    assert "alice" not in users[0]


def test_a_clock_behind_the_log_is_told_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    now = LogClock(clock, lambda: 0.0, last=START)
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


@played(count=2)
async def test_a_store_ahead_of_the_clock_is_told_at_the_start(
    engine: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.close()
    engine.clock.now -= DAY
    later = await engine.opened()
    await later.start()
    assert later.clock_lag == DAY
    assert "86400 s behind the log" in caplog.text


@pytest.mark.parametrize("stays", [False, True])
@played(own_timer=True)
async def test_a_clock_that_jumps_ahead_makes_no_list_old(engine: Scene, stays: bool) -> None:

    def wait(seconds: float) -> None:
        engine.clock.now += seconds
        engine.timer.now += seconds

    await engine.put_items("q", items(2))
    before = await engine.ranked()
    wait(DAY)
    engine.clock.now += 40 * DAY
    for _ in range(3):  # whether the clock is taken to be right in the end or not
        during = await engine.ranked()
        wait(60.0 if stays else 0.0)
    if not stays:
        engine.clock.now -= 40 * DAY
    await engine.ranked()
    assert (await engine.store.log.last_time() > START + 40 * DAY) == stays
    await engine._roll_up()
    assert await engine.store.log.length() == 5, "a retention of 30 days"
    events = [click("e1", before.ranking_id, "i0"), click("e2", during.ranking_id, "i0")]
    assert (await engine.feedback(events)).accepted == 2
    wait(29.5 * DAY)
    await engine._roll_up()
    assert await engine.store.log.length() == 6, "the first list has been there for 30.5 days"
    wait(DAY)
    await engine._roll_up()
    assert await engine.store.log.length() == 0


@played(
    settings(
        ranking={"window": 10.0},
        training={"every_seconds": 10, "after_events": 0},
        insights={"refresh_seconds": 10.0},
    ),
    count=6,
    own_timer=True,
)
async def test_windows_surveys_and_training_go_on_when_the_clock_is_set_back(engine: Scene) -> None:
    first = await engine.ranked(k=2, user="u")
    await engine.feedback([click("e", first.ranking_id, first.items[0].id)])
    seen = await engine.insights()
    engine.clock.now -= 86400.0
    engine.timer.now += 9.0
    again = await engine.ranked(k=2, user="u")
    assert [item.id for item in again.items] == [item.id for item in first.items]
    await engine.ranked(k=6)
    kept = await engine.insights()
    assert kept.calibration == seen.calibration  # not yet looked at again
    assert kept.training.next_time == START + 1.0
    engine.timer.now += 2.0
    later = await engine.ranked(k=2, user="u")
    assert [item.id for item in later.items] != [item.id for item in first.items]
    assert engine._training.due()
    assert len((await engine.insights()).calibration) > len(seen.calibration)
    times = {entry.time for entry in await engine.lists()}
    assert times == {START}
