from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ebrank import BehaviorStats, EBRanker, Examination
from ebrank.service.api import ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.problems import NotFound, Problem, Unavailable
from ebrank.service.records import EventEntry, Operation, RankingEntry, Written
from ebrank.service.settings import Settings
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.sqlite import SqliteStore
from tests.service.scenes import Clock, click, ids, items, play, settings


def test_the_shapes_that_are_pinned() -> None:
    async def scene(engine: Engine) -> None:
        put = await engine.put_items("q", items(3))
        assert (put.added, put.changed, put.candidates) == (3, 0, 3)
        answer = await engine.rank(RankRequest("q", k=2))
        assert answer.model == 0
        assert [item.rank for item in answer.items] == [1, 2]
        # α = 1, β = 5 and nothing seen: R̂ = 1/6, and a bonus of ε·R̂/6²
        assert answer.items[0].score == pytest.approx(1 / 6 + (1 / 6) / 36)
        fed = await engine.feedback([click("e", answer.ranking_id, answer.items[1].id)])
        assert (fed.accepted, fed.duplicate, fed.rejected) == (1, 0, 0)
        view = await engine.query("q")
        clicked = next(one for one in view.items if one.id == answer.items[1].id)
        p = 1 / np.log2(3)
        assert (clicked.shown, clicked.clicks) == (1, 1)
        assert clicked.exposure == p
        assert clicked.weighted_clicks == 1 / p
        assert clicked.relevance == (1 / p + 1) / (1 + 1 + 5)

    play(scene)


def test_a_log_replayed_through_the_library_gives_the_same_scores(tmp_path: Path) -> None:
    """The service ranks as `EBRanker` would after `BehaviorStats.record` of every session."""
    store = SqliteStore(tmp_path / "store")
    features = np.array([item.features for item in items(12, width=3)], np.float32)
    stats, curve, ranker = BehaviorStats.zeros(12), Examination(), EBRanker()
    rng = np.random.default_rng(3)

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(12, width=3))
        keys = engine._queries.get("q", 0.0).tie_keys  # type: ignore[union-attr]
        for session in range(60):
            answer = await engine.rank(RankRequest("q", k=5))
            expected = ranker.rank(features, stats, k=5, tie_keys=keys)
            rows = [int(name[1:]) for name in ids(answer)]
            assert rows == expected.order.tolist()
            assert [item.score for item in answer.items] == expected.scores.tolist()
            clicked = rng.random(5) < 0.3
            events = [
                click(f"{session}-{rank}", answer.ranking_id, answer.items[rank].id)
                for rank in np.flatnonzero(clicked)
            ]
            await engine.feedback(events)
            stats.record(expected.order, clicked, curve)

    play(scene, store=store)
    state = store.load("q")
    assert state is not None
    for name, values in stats.to_arrays().items():
        np.testing.assert_array_equal(getattr(state.stats, name), values)
    store.close()


def test_explanations_are_the_librarys() -> None:
    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(4))
        first = await engine.rank(RankRequest("q", k=3))
        await engine.feedback([click("e", first.ranking_id, first.items[0].id)])
        stats = BehaviorStats.zeros(4)
        rows = [int(name[1:]) for name in ids(first)]
        stats.record(rows, [True, False, False], Examination())
        answer = await engine.rank(RankRequest("q", k=4, explain=True))
        ranking = EBRanker().rank(np.zeros((4, 2), np.float32), stats)
        interval = {row: ranking.interval[at] for at, row in enumerate(ranking.order.tolist())}
        for item in answer.items:
            row = int(item.id[1:])
            why = ranking.explain(row)
            assert (item.relevance, item.bonus, item.prior) == (
                why.relevance,
                why.bonus,
                why.prior,
            )
            assert (item.shown, item.clicks) == (stats.shown[row], stats.clicks[row])
            assert item.exposure == stats.exposure[row]
            np.testing.assert_array_equal(item.interval, interval[row])

    play(scene)


def test_some_candidates_only_and_features_on_the_fly() -> None:
    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(5))
        answer = await engine.rank(RankRequest("q", items=["i1", "i3", "i1"]))
        assert sorted(ids(answer)) == ["i1", "i3"]
        answer = await engine.rank(RankRequest("q", items=["i4", ItemIn("new", [0.0, 1.0])]))
        assert sorted(ids(answer)) == ["i4", "new"]
        assert (await engine.query("q")).items[-1].id == "new"
        with pytest.raises(Problem, match="'gone', 'lost'"):
            await engine.rank(RankRequest("q", items=["gone", "i1", "lost"]))
        assert ids(await engine.rank(RankRequest("other", items=[ItemIn("x", [1.0, 1.0])]))) == [
            "x"
        ]

    play(scene)


def test_withdrawn_items_leave_the_list_and_keep_their_history() -> None:
    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(3))
        answer = await engine.rank(RankRequest("q"))
        assert (await engine.withdraw("q", "i1")).withdrawn
        assert not (await engine.withdraw("q", "i1")).withdrawn
        assert "i1" not in ids(await engine.rank(RankRequest("q")))
        with pytest.raises(Problem, match="'i1'"):
            await engine.rank(RankRequest("q", items=["i1"]))
        # a click on a list from before still counts
        assert (await engine.feedback([click("e", answer.ranking_id, "i1")])).accepted == 1
        view = await engine.query("q")
        assert [one.id for one in view.items] == ["i0", "i2"]
        assert [(one.id, one.shown, one.clicks) for one in view.withdrawn] == [("i1", 1, 1)]
        await engine.put_items("q", [ItemIn("i1", [0.5, 0.5])])
        back = {one.id: one for one in (await engine.query("q")).items}
        assert back["i1"].clicks == 1

    play(scene)


def test_what_is_not_known_is_told() -> None:
    async def scene(engine: Engine) -> None:
        for call in (
            engine.rank(RankRequest("no")),
            engine.query("no"),
            engine.withdraw("no", "x"),
        ):
            with pytest.raises(NotFound, match="'no'"):
                await call
        await engine.put_items("q", items(1))
        with pytest.raises(NotFound, match="no item 'x'"):
            await engine.withdraw("q", "x")
        with pytest.raises(NotFound, match="model 3"):
            await engine.activate(3)
        assert (await engine.put_items("empty", [])).candidates == 0

    play(scene)


def test_a_query_without_candidates_has_an_empty_list() -> None:
    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(1))
        await engine.withdraw("q", "i0")
        answer = await engine.rank(RankRequest("q", explain=True))
        assert answer.items == []
        assert (await engine.query("q")).items == []
        await engine.insights()

    play(scene)


class FailingStore(MemoryStore):
    """A store whose disk is full now and then."""

    broken = False

    def write(self, operations: Sequence[Operation], *, flush: bool) -> list[Written]:
        if self.broken:
            raise StoreError("log.db: the disk is full. Make room")
        return super().write(operations, flush=flush)


def test_a_failed_write_changes_nothing() -> None:
    store = FailingStore()

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(3))
        answer = await engine.rank(RankRequest("q"))
        before = await engine.query("q")
        store.broken = True
        with pytest.raises(Unavailable, match="disk is full"):
            await engine.rank(RankRequest("q"))
        with pytest.raises(Unavailable, match="disk is full"):
            await engine.feedback([click("e", answer.ranking_id, "i0")])
        store.broken = False
        assert await engine.query("q") == before
        assert (await engine.feedback([click("e", answer.ranking_id, "i0")])).accepted == 1

    play(scene, store=store)


def test_memory_may_be_short_and_nothing_is_counted_twice() -> None:
    """Queries come and go from memory; the counters are the store's all the same."""
    store, rng = MemoryStore(), np.random.default_rng(0)

    async def scene(engine: Engine) -> None:
        for query in range(5):
            await engine.put_items(f"q{query}", items(4))
        lists = []
        for session in range(200):
            lists.append(await engine.rank(RankRequest(f"q{rng.integers(5)}", k=3)))
            events = [
                click(f"{session}-{at}", one.ranking_id, one.items[int(rng.integers(3))].id)
                for at, one in enumerate(lists[-7::3])
            ]
            await engine.feedback(events)
        for query in range(5):
            live = engine._queries.get(f"q{query}", 0.0)
            state = store.load(f"q{query}")
            assert live is not None
            assert state is not None
            for name, values in state.stats.to_arrays().items():
                np.testing.assert_array_equal(getattr(live.state.stats, name), values)
            np.testing.assert_array_equal(live.state.first_shown, state.first_shown)

    play(scene, settings(limits={"items_in_memory": 9}), store=store)


def test_what_was_served_survives_a_restart(tmp_path: Path) -> None:
    clock = Clock()

    async def before(engine: Engine) -> tuple[str, list[str], object]:
        await engine.put_items("q", items(5))
        answer = await engine.rank(RankRequest("q", k=3))
        await engine.feedback([click("e1", answer.ranking_id, answer.items[0].id)])
        return answer.ranking_id, ids(answer), await engine.query("q")

    async def after(engine: Engine) -> None:
        assert await engine.query("q") == view
        again = click("e1", ranking, listed[0])
        fed = await engine.feedback([again, click("e2", ranking, listed[1])])
        assert (fed.accepted, fed.duplicate) == (1, 1)
        answer = await engine.rank(RankRequest("q"))
        assert answer.ranking_id != ranking
        with pytest.raises(Problem, match="not 2"):
            await engine.put_items("q", [ItemIn("x", [1.0])])

    first = SqliteStore(tmp_path / "store")
    ranking, listed, view = play(before, store=first, clock=clock)
    first.close()
    clock.now -= 1000.0  # the machine's clock went back meanwhile
    second = SqliteStore(tmp_path / "store")
    play(after, store=second, clock=clock)
    times = [
        entry.time if isinstance(entry, RankingEntry) else entry.received for entry in second.log()
    ]
    assert times == sorted(times)
    second.close()


def test_users_are_hashed_in_the_log() -> None:
    store = MemoryStore()

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(2))
        await engine.rank(RankRequest("q", user="alice@example.org"))
        await engine.rank(RankRequest("q", user="alice@example.org"))

    play(scene, store=store)
    users = [entry.user for entry in store.log() if isinstance(entry, RankingEntry)]
    assert users[0] == users[1]
    assert users[0] is not None
    assert "alice" not in users[0]


def test_a_caller_that_goes_away_takes_nobody_along(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(2))
        answer = await engine.rank(RankRequest("q"))
        for number in range(20):
            task = asyncio.create_task(
                engine.feedback([click(f"e{number}", answer.ranking_id, "i0")])
            )
            await asyncio.sleep(0)
            task.cancel()
        fed = await asyncio.wait_for(
            engine.feedback([click("last", answer.ranking_id, "i1")]), timeout=10
        )
        assert fed.accepted == 1

    play(scene, store=store)
    events = [entry for entry in store.log() if isinstance(entry, EventEntry)]
    assert {entry.item: entry.event_id for entry in events} == {"i0": "e0", "i1": "last"}
    store.close()


def test_durability_disk_waits_for_the_flush(tmp_path: Path) -> None:
    flushes = []

    class Counting(SqliteStore):
        def flush(self) -> None:
            flushes.append(1)
            super().flush()

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(2))
        flushes.clear()
        await engine.rank(RankRequest("q"))

    for durability, expected in (("process", 0), ("disk", 1)):
        store = Counting(tmp_path / durability)
        play(scene, settings(store={"durability": durability}), store=store)
        assert len(flushes) == expected
        store.close()


def test_default_settings_are_the_papers() -> None:
    chosen = Settings()
    assert (chosen.ranking.beta, chosen.ranking.epsilon) == (EBRanker().beta, EBRanker().epsilon)
    assert chosen.examination.examination() == Examination()
