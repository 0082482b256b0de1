"""Features come, go and change their names while lists are served."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.policy import model_file
from ebrank.service.api import ChangeFeaturesRequest, ItemIn, NewFeature, RankRequest
from ebrank.service.core.problems import Problem
from ebrank.service.engine import Engine
from ebrank.service.learning.fitting import TrainingJob, TrainingResult, fit, gather
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from tests.service.scenes import Clock, click, ids, linear_state, play, played, settings
from tests.service.store.blocking import run

XY = [ItemIn("a", {"x": 1.0, "y": 0.5}), ItemIn("b", {"x": 0.0, "y": 1.0})]


def trained(*weights: float, features: tuple[str, ...]) -> TrainingResult:
    """Return what a run could have learned of some features."""
    ranker = EBRanker("auto")
    ranker.state_ = linear_state(*weights)
    document = model_file.to_bytes(ranker).decode()
    return TrainingResult(9, True, "it is better", 0.1, 0.2, document, features)


def by_score(*scores: float) -> list[float]:
    """Return the priors of scores under the model of `trained`."""
    ranker = EBRanker("auto")
    ranker.state_ = linear_state(1.0)
    prior = ranker.prior(np.array(scores, np.float32).reshape(-1, 1))
    return [round(float(a), 5) for a in prior.a]


async def priors(engine: Engine) -> list[float]:
    live = await engine._queries.get("q", 0.0)
    assert live is not None
    return [round(float(a), 5) for a in live.prior(engine.resources.active.model).a]


async def change(engine: Engine, *, add: str = "", remove: str = "", **renamed: str) -> list[str]:
    request = ChangeFeaturesRequest(
        rename=renamed, remove=remove.split(), add=[NewFeature(name) for name in add.split()]
    )
    return (await engine.change_features(request)).changes


def test_rows_that_are_written_meanwhile_do_not_stand_in_the_way() -> None:
    store = MemoryStore()
    put, others = store.catalog.put, iter("cde")

    async def overtaken(rows: Sequence[NewItem], time: float, **named: Any) -> Any:  # noqa: ANN401
        """Write after another request has, the first times."""
        for name in itertools.islice(others, 1):
            await put([NewItem(name, (1.0,))], time)
        return await put(rows, time, **named)

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", XY)
        store.catalog.put = overtaken  # type: ignore[assignment, method-assign]
        await change(engine, add="z", x="ex")
        assert [one.name for one in (await engine.features()).features] == ["ex", "y", "z"]
        assert next(others, None) is None
        with pytest.raises(Problem, match="already a feature 'z'"):
            await change(engine, add="z")

    play(scene, store=store)


def test_a_model_keeps_serving_by_what_its_features_are() -> None:
    store = MemoryStore()

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", XY)
        await engine._adopt(trained(2.0, -1.0, features=("p0", "p1")), against=0)
        assert await priors(engine) == by_score(1.5, -1.0)
        await change(engine, add="z", x="ex")
        await engine.put_items("q", [ItemIn("c", {"z": 9.0, "ex": 3.0, "y": 1.0})])
        assert await priors(engine) == by_score(1.5, -1.0, 5.0)
        changes = await change(engine, remove="ex")
        assert changes == [
            "remove ex: model 1 has a weight of 2 for it; it counts as missing there until the "
            "next fit"
        ]
        assert await priors(engine) == by_score(-0.5, -1.0, -1.0)
        await change(engine, add="x ex")  # new ones, which the model knows nothing of
        await engine.put_items("q", [ItemIn("c", {"z": 9.0, "x": 3.0, "ex": 3.0, "y": 1.0})])
        assert await priors(engine) == by_score(-0.5, -1.0, -1.0)

    play(scene, store=store)

    async def later(engine: Engine) -> None:
        assert await priors(engine) == by_score(-0.5, -1.0, -1.0)
        assert [feature.name for feature in (await engine.features()).features] == [
            "y",
            "z",
            "x",
            "ex",
        ]

    play(later, store=store)


@pytest.mark.parametrize(("rule", "expected"), [("zero", 0.0), ("mean", 3.0), ("reject", 3.0)])
def test_items_of_before_lack_a_new_feature(rule: str, expected: float) -> None:
    """What is refused of new items, once it is required, is filled for those stored before."""

    async def scene(engine: Engine) -> None:
        await engine.put_items("q", XY)
        assert await change(engine, add="z") == [
            "add z: 2 items of queries lack it until they are put again"
        ]
        assert len((await engine.rank(RankRequest("q"))).items) == 2
        await engine.change_features(ChangeFeaturesRequest(require=["z"]))
        if rule == "reject":
            with pytest.raises(Problem, match="item 'c' lacks feature 'z'"):
                await engine.put_items("q", [ItemIn("c", {"x": 0.0, "y": 0.0})])
        await engine.put_items(
            "q", [ItemIn("c", {"x": 0.0, "y": 0.0, "z": 2.0}), ItemIn("d", [0.0, 0.0, 4.0])]
        )
        await engine._adopt(trained(1.0, features=("p2",)), against=0)
        assert await priors(engine) == by_score(expected, expected, 2.0, 4.0)
        told = await engine.features()
        assert [(one.name, one.items, one.lacking) for one in told.features] == [
            ("x", 4, 0),
            ("y", 4, 0),
            ("z", 4, 2),
        ]

    play(scene, settings(features={"missing": rule}))


@played()
async def test_a_dry_run_changes_nothing_and_says_what_would(engine: Engine) -> None:
    await engine.put_items("q", XY)
    await engine._adopt(trained(2.0, -1.0, features=("p0", "p1")), against=0)
    before, version = await engine.features(), await engine._store.catalog.version()
    request = ChangeFeaturesRequest(
        rename={"y": "why"}, remove=["x"], add=[NewFeature("s", shared=True)], dry_run=True
    )
    told = await engine.change_features(request)
    assert told.dry_run
    assert told.changes == [
        "rename y to why: nothing else changes",
        "remove x: model 1 has a weight of 2 for it; it counts as missing there until the next fit",
        "add s (shared): 0 items of the catalog lack it until they are put again",
    ]
    assert [(one.name, one.weight) for one in told.features] == [("why", -1.0), ("s", None)]
    assert [(one.name, one.weight) for one in told.removed] == [("x", 2.0)]
    assert await engine.features() == before
    assert await engine._store.catalog.version() == version
    assert await priors(engine) == by_score(1.5, -1.0)


@played()
async def test_a_change_that_makes_no_sense_changes_nothing(engine: Engine) -> None:
    await engine.put_items("q", XY)
    for request, told in (
        (ChangeFeaturesRequest(remove=["z"]), "there is no feature 'z', only x, y"),
        (ChangeFeaturesRequest(rename={"x": "z"}, remove=["x"]), "no feature 'x', only z, y"),
        (ChangeFeaturesRequest(add=[NewFeature("x")]), "there is already a feature 'x'"),
        (ChangeFeaturesRequest(require=["z"]), "there is no feature 'z', only x, y"),
    ):
        with pytest.raises(Problem, match=told):
            await engine.change_features(request)
    assert [one.name for one in (await engine.features()).features] == ["x", "y"]


@played()
async def test_positions_are_given_names_once(engine: Engine) -> None:
    await engine.put_items("q", [ItemIn("a", [1.0, 2.0])])
    assert [one.name for one in (await engine.features()).features] == [None, None]
    await engine.change_features(ChangeFeaturesRequest(name=["x", "y"]))
    await engine.put_items("q", [ItemIn("b", {"y": 4.0, "x": 3.0})])
    await engine.put_items("q", [ItemIn("c", [5.0, 6.0])])
    with pytest.raises(Problem, match="2 names for 0 features"):
        await engine.change_features(ChangeFeaturesRequest(name=["v", "w"]))
    state = await engine._store.items.load("q")
    assert state is not None
    assert state.features.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_the_next_fit_uses_the_features_as_they_are() -> None:
    store = MemoryStore()
    rng = np.random.default_rng(0)

    async def scene(engine: Engine) -> None:
        for number in range(12):
            items = [ItemIn(f"i{at}", {"x": float(rng.random()), "y": at / 4.0}) for at in range(5)]
            await engine.put_items(f"q{number}", items)
        await engine._adopt(trained(1.0, 1.0, features=("p0", "p1")), against=0)
        await change(engine, remove="x", add="z")
        for number in range(12):
            items = [ItemIn(f"i{at}", {"y": at / 4.0, "z": float(at == 4)}) for at in range(5)]
            await engine.put_items(f"q{number}", items)
            for turn in range(8):
                served = await engine.rank(RankRequest(f"q{number}"))
                if turn % 2:
                    await engine.feedback([click(served.ranking_id, served.ranking_id, "i4")])

    play(scene, store=store)
    job = TrainingJob(active=1)
    table = run(gather(store, job))
    assert table is not None
    assert tuple(table.keys) == ("p1", "p2")
    fitted = fit(table, job)
    assert fitted.features == ("p1", "p2")
    assert fitted.document is not None
    assert fitted.previous_loss is not None

    async def later(engine: Engine) -> None:
        await engine._adopt(fitted, against=1)
        assert engine.version == 2
        told = await engine.features()
        assert [one.weight is None for one in told.features] == [False, False]
        assert told.removed == []
        assert ids(await engine.rank(RankRequest("q0", explore=False)))[0] == "i4"

    play(later, store=store)


def test_another_server_notices_a_change_when_items_do_not_fit_what_it_knows() -> None:
    """Those that fit would make it notice; but perhaps all callers already send a new feature."""

    async def pieces(line: bytes) -> AsyncIterator[bytes]:
        yield line

    async def scene() -> None:
        store, clock = MemoryStore(), Clock()
        one = await Engine.open(store, Settings(), clock=clock, timer=clock)
        await one.put_catalog([ItemIn(name, {"s": 1.0}) for name in "ab"])
        await one.put_items("q", XY)
        more = [ItemIn("a", {"x": 1.0, "y": 0.5, "z": 1.0})]
        shared = [ItemIn("a", {"s": 1.0, "t": 1.0})]
        line = b'{"id": "a", "features": {"s": 1.0, "t": 1.0}}'

        async def loaded(engine: Engine) -> None:
            assert (await engine.load_catalog(pieces(line))).rejected == 0

        calls: list[Callable[[Engine], Awaitable[object]]] = [
            lambda engine: engine.rank(RankRequest("q", items=[*more])),
            lambda engine: engine.put_items("q", more),
            lambda engine: engine.put_catalog(shared),
            loaded,
        ]
        others = [await Engine.open(store, Settings(), clock=clock, timer=clock) for _ in calls]
        added = [NewFeature("z"), NewFeature("t", shared=True)]
        for other, call in zip(others[:3], calls, strict=False):
            with pytest.raises(Problem, match="unknown feature"):
                await call(other)
        await one.change_features(ChangeFeaturesRequest(add=added))
        for other, call in zip(others, calls, strict=True):
            await call(other)
            await other.close()
        await one.close()

    run(scene())


def test_another_server_notices_a_change_by_its_next_write() -> None:
    async def scene() -> None:
        store, clock = MemoryStore(), Clock()
        one = await Engine.open(store, Settings(), clock=clock, timer=clock)
        two = await Engine.open(store, Settings(), clock=clock, timer=clock)
        await one.put_items("q", XY)
        await one._adopt(trained(2.0, -1.0, features=("p0", "p1")), against=0)
        await two.rank(RankRequest("q"))
        await two.rank(RankRequest("q"))
        assert await priors(two) == by_score(1.5, -1.0)
        await one.change_features(ChangeFeaturesRequest(remove=["x"], add=[NewFeature("z")]))
        await two.rank(RankRequest("q"))
        assert await priors(two) == by_score(-0.5, -1.0)
        await two.put_items("q", [ItemIn("c", {"y": 1.0, "z": 2.0})])
        await one.change_features(ChangeFeaturesRequest(add=[NewFeature("w")]))
        told = await two.change_features(ChangeFeaturesRequest(add=[NewFeature("v")]))
        assert [feature.name for feature in told.features] == ["y", "z", "w", "v"]
        for engine in (one, two):
            await engine.close()

    run(scene())
