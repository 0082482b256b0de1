"""Features come, go and change their names while lists are served."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.service.api import ChangeFeaturesRequest, ItemIn, NewFeature
from ebrank.service.core.problems import Problem
from ebrank.service.engine import Engine
from ebrank.service.learning.fitting import TrainingJob, TrainingResult, fit, gather
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from tests.service.scenes import (
    Opened,
    better,
    clicked,
    ids,
    linear_state,
    played,
    ranked,
    settings,
    stored,
)

XY = [ItemIn("a", {"x": 1.0, "y": 0.5}), ItemIn("b", {"x": 0.0, "y": 1.0})]


def trained(*weights: float, features: tuple[str, ...]) -> TrainingResult:
    """Return what a run could have learned of some features."""
    return better(*weights, features=features, policy="auto")


def scored(**scores: float) -> dict[str, float]:
    """Return the priors of items with these scores under the model of `trained`."""
    ranker = EBRanker("auto")
    ranker.state_ = linear_state(1.0)
    prior = ranker.prior(np.array([*scores.values()], np.float32).reshape(-1, 1))
    return dict(zip(scores, [round(float(a), 5) for a in prior.a], strict=True))


async def priors(engine: Engine, query: str = "q") -> dict[str, float]:
    """Return the priors of a query's candidates."""
    live = await engine._queries.get(query, 0.0)
    assert live is not None
    prior = live.prior(engine.resources.active.model)
    names = live.ids.at(live.candidates.tolist())
    return dict(zip(names, [round(float(a), 5) for a in prior.a], strict=True))


async def change(
    engine: Engine, *, add: str = "", add_shared: str = "", remove: str = "", **renamed: str
) -> list[str]:
    """Change features, and return the changes in words."""
    added = [NewFeature(name) for name in add.split()]
    added += [NewFeature(name, shared=True) for name in add_shared.split()]
    request = ChangeFeaturesRequest(rename=renamed, remove=remove.split(), add=added)
    return (await engine.change_features(request)).changes


async def names(engine: Engine) -> list[str | None]:
    """Return the names of the features that items have."""
    return [feature.name for feature in (await engine.features()).features]


@played()
async def test_rows_that_are_written_meanwhile_do_not_stand_in_the_way(
    engine: Engine, store: MemoryStore
) -> None:
    put, others = store.catalog.put, iter("cde")

    async def overtaken(rows: Sequence[NewItem], time: float, **named: Any) -> Any:  # noqa: ANN401
        """Write after another request has, the first times."""
        for name in itertools.islice(others, 1):
            await put([NewItem(name, (1.0,))], time)
        return await put(rows, time, **named)

    await engine.put_items("q", XY)
    store.catalog.put = overtaken  # type: ignore[assignment, method-assign]
    await change(engine, add="z", x="ex")
    assert await names(engine) == ["ex", "y", "z"]
    assert next(others, None) is None
    with pytest.raises(Problem, match="already a feature 'z'"):
        await change(engine, add="z")
    assert await names(engine) == ["ex", "y", "z"]


@played()
async def test_a_model_keeps_serving_by_what_its_features_are(
    engine: Engine, opened: Opened
) -> None:
    await engine.put_items("q", XY)
    await engine._adopt(trained(2.0, -1.0, features=("p0", "p1")), against=0)
    assert await priors(engine) == scored(a=1.5, b=-1.0)
    await change(engine, add="z", x="ex")
    await engine.put_items("q", [ItemIn("c", {"z": 9.0, "ex": 3.0, "y": 1.0})])
    assert await priors(engine) == scored(a=1.5, b=-1.0, c=5.0)
    await change(engine, remove="ex")
    later = scored(a=-0.5, b=-1.0, c=-1.0)
    assert await priors(engine) == later
    await change(engine, add="x ex")  # new ones, which the model knows nothing of
    await engine.put_items("q", [ItemIn("c", {"z": 9.0, "x": 3.0, "ex": 3.0, "y": 1.0})])
    for each in (engine, await opened()):
        assert await priors(each) == later
        assert await names(each) == ["y", "z", "x", "ex"]


@pytest.mark.parametrize(("rule", "expected"), [("zero", 0.0), ("mean", 3.0), ("reject", 3.0)])
@played(lambda rule: settings(features={"missing": rule}))
async def test_items_of_before_lack_a_new_feature(
    engine: Engine, rule: str, expected: float
) -> None:
    """What is refused of new items, once it is required, is filled for those stored before."""
    await engine.put_items("q", XY)
    [said] = await change(engine, add="z")
    assert said == "add z: 2 items of queries lack it until they are put again"
    assert len((await ranked(engine)).items) == 2
    await engine.change_features(ChangeFeaturesRequest(require=["z"]))
    if rule == "reject":
        with pytest.raises(Problem, match="item 'c' lacks feature 'z'"):
            await engine.put_items("q", [ItemIn("c", {"x": 0.0, "y": 0.0})])
    new = [ItemIn("c", {"x": 0.0, "y": 0.0, "z": 2.0}), ItemIn("d", [0.0, 0.0, 4.0])]
    await engine.put_items("q", new)
    await engine._adopt(trained(1.0, features=("p2",)), against=0)
    assert await priors(engine) == scored(a=expected, b=expected, c=2.0, d=4.0)
    lacking = [(each.items, each.lacking) for each in (await engine.features()).features]
    assert lacking == [(4, 0), (4, 0), (4, 2)]


@played()
async def test_a_dry_run_changes_nothing_and_says_what_would(engine: Engine) -> None:
    await engine.put_items("q", XY)
    await engine._adopt(trained(2.0, -1.0, features=("p0", "p1")), against=0)
    before, version = await engine.features(), await engine._store.catalog.version()
    request = ChangeFeaturesRequest(
        rename={"y": "why"}, remove=["x"], add=[NewFeature("s", shared=True)], dry_run=True
    )
    answer = await engine.change_features(request)
    assert answer.dry_run
    assert answer.changes == [
        "rename y to why: nothing else changes",
        "remove x: model 1 has a weight of 2 for it; it counts as missing there until the next fit",
        "add s (shared): 0 items of the catalog lack it until they are put again",
    ]
    assert [(each.name, each.weight) for each in answer.features] == [("why", -1.0), ("s", None)]
    assert [(each.name, each.weight) for each in answer.removed] == [("x", 2.0)]
    assert await engine.features() == before
    assert await engine._store.catalog.version() == version
    assert await priors(engine) == scored(a=1.5, b=-1.0)


@played()
async def test_positions_are_given_names_once(engine: Engine) -> None:
    await engine.put_items("q", [ItemIn("a", [1.0, 2.0])])
    assert await names(engine) == [None, None]
    await engine.change_features(ChangeFeaturesRequest(name=["x", "y"]))
    await engine.put_items("q", [ItemIn("b", {"y": 4.0, "x": 3.0})])
    await engine.put_items("q", [ItemIn("c", [5.0, 6.0])])
    with pytest.raises(Problem, match="2 names for 0 features"):
        await engine.change_features(ChangeFeaturesRequest(name=["v", "w"]))
    state = await stored(engine._store)
    assert state.features.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@played()
async def test_the_next_fit_uses_the_features_as_they_are(
    engine: Engine, store: MemoryStore, opened: Opened
) -> None:
    async def put(query: int, **features: Sequence[float]) -> None:
        rows = [
            dict(zip(features, row, strict=True)) for row in zip(*features.values(), strict=True)
        ]
        await engine.put_items(
            f"q{query}", [ItemIn(f"i{at}", {**row}) for at, row in enumerate(rows)]
        )

    rng, slope = np.random.default_rng(0), [at / 4.0 for at in range(5)]
    for query in range(12):
        await put(query, x=rng.random(5).tolist(), y=slope)
    await engine._adopt(trained(1.0, 1.0, features=("p0", "p1")), against=0)
    await change(engine, remove="x", add="z")
    for query in range(12):
        await put(query, y=slope, z=[0.0, 0.0, 0.0, 0.0, 1.0])
        for turn in range(8):
            served = await ranked(engine, f"q{query}")
            if turn % 2:
                await clicked(engine, served, "i4")
    job = TrainingJob(active=1)
    fitted = fit(await gather(store, job), job)
    assert fitted.features == ("p1", "p2")
    assert fitted.previous_loss is not None
    later = await opened()
    await later._adopt(fitted, against=1)
    assert later.version == 2
    view = await later.features()
    assert [each.weight is None for each in view.features] == [False, False]
    assert view.removed == []
    assert ids(await ranked(later, "q0", explore=False))[0] == "i4"


async def load_a(engine: Engine) -> object:
    """Put a feature of the catalog that may be new, as a line."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"id": "a", "features": {"s": 1.0, "t": 1.0}}'

    answer = await engine.load_catalog(pieces())
    if answer.rejected:
        raise Problem(answer.errors[0].reason)
    return answer


NEW_Z = [ItemIn("a", {"x": 1.0, "y": 0.5, "z": 1.0})]


@pytest.mark.parametrize(
    "call",
    [
        lambda engine: ranked(engine, items=NEW_Z),
        lambda engine: engine.put_items("q", NEW_Z),
        lambda engine: engine.put_catalog([ItemIn("a", {"s": 1.0, "t": 1.0})]),
        load_a,
    ],
)
@played()
async def test_another_server_notices_a_change_when_items_do_not_fit_what_it_knows(
    engine: Engine, other: Engine, call: Callable[[Engine], Awaitable[object]]
) -> None:
    """Those that fit would make it notice; but perhaps all callers already send a new feature."""
    await engine.put_catalog([ItemIn(name, {"s": 1.0}) for name in "ab"])
    await engine.put_items("q", XY)
    with pytest.raises(Problem, match="unknown feature"):
        await call(other)
    await change(engine, add="z", add_shared="t")
    await call(other)


@played()
async def test_another_server_notices_a_change_by_its_next_write(
    engine: Engine, other: Engine
) -> None:
    await engine.put_items("q", XY)
    await engine._adopt(trained(2.0, -1.0, features=("p0", "p1")), against=0)
    await ranked(other)
    await ranked(other)
    assert await priors(other) == scored(a=1.5, b=-1.0)
    await change(engine, remove="x", add="z")
    await ranked(other)
    assert await priors(other) == scored(a=-0.5, b=-1.0)
    await other.put_items("q", [ItemIn("c", {"y": 1.0, "z": 2.0})])
    await change(engine, add="w")
    await change(other, add="v")
    assert await names(other) == ["y", "z", "w", "v"]
