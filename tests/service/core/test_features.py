"""Features of items: what the first ones fix, and how they come, go and change their names."""

from __future__ import annotations

import itertools
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.environment.config import SettingsError
from ebrank.service.api import ChangeFeaturesRequest, ItemIn, NewFeature
from ebrank.service.core.feature_schema import NO_FEATURES, FeatureSchema, filled
from ebrank.service.core.problems import Problem
from ebrank.service.learning.fitting import TrainingJob, TrainingResult, fit, gather
from ebrank.service.store.base import StoreError
from ebrank.service.store.records import NewItem
from tests.service.faulty import FaultyStore
from tests.service.scenes import Scene, better, ids, linear_state, played, settings


@played(on=FaultyStore)
async def test_items_that_were_not_stored_fix_no_schema(engine: Scene) -> None:
    wider = [ItemIn("a", [1.0, 2.0])]
    engine.store.full = True
    with pytest.raises(StoreError):
        await engine.put_items("q", wider)
    engine.store.full = False
    assert (await engine.put_items("q", [ItemIn("a", [1.0])])).added == 1
    for each in (engine, await engine.opened()):
        with pytest.raises(Problem, match="2 features, not 1"):
            await each.put_items("q", wider)


@pytest.mark.parametrize("nothing", [[], {}])
@played()
async def test_the_first_items_need_features(engine: Scene, nothing: list[float | None]) -> None:
    with pytest.raises(Problem, match=r"'a' has no features.*send a constant"):
        await engine.put_items("q", [ItemIn("a", nothing)])
    assert (await engine.put_items("q", [ItemIn("a", {"price": 1.0})])).added == 1


@played()
async def test_an_item_is_given_once(engine: Scene) -> None:
    twice = [ItemIn("a", [1.0]), ItemIn("b", [1.0]), ItemIn("a", [2.0])]
    with pytest.raises(Problem, match="item 'a' appears 2 times") as told:
        await engine.put_items("q", twice)
    assert told.value.status == 422
    assert (await engine.put_items("q", twice[:2])).added == 2
    assert (await engine.put_items("q", [*twice[1:], ItemIn("c", [0.0])])).changed == 2


@played(settings(features={"missing": "mean"}), on=FaultyStore)
async def test_features_sent_again_with_a_rank_are_not_written_again(engine: Scene) -> None:
    some: list[str | ItemIn]
    some = [ItemIn("a", {"x": 0.1, "y": None}), ItemIn("b", {"x": 2.0, "y": 3.0})]
    await engine.ranked(items=some)
    assert engine.store.puts == 1
    await engine.ranked(items=[*some, "a"])
    assert engine.store.puts == 1
    changed = [ItemIn("a", {"x": 0.1}), ItemIn("b", {"x": 2.0, "y": 3.5}), ItemIn("c", {"x": 0.0})]
    await engine.ranked(items=list(changed))
    assert engine.store.puts == 2
    state = await engine.stored()
    assert state.version == 5, "two writes of items and three lists"
    expected = np.array([[0.1, np.nan], [2.0, 3.5], [0.0, np.nan]], np.float32)
    np.testing.assert_array_equal(state.features, expected)
    await engine.put_items("q", changed)  # who may change items always writes
    assert engine.store.puts == 3


def named(*names: str) -> FeatureSchema:
    return NO_FEATURES.with_features(*names)


@pytest.mark.parametrize(
    "schema",
    [
        NO_FEATURES,
        FeatureSchema.positions(3),
        named("a", "é").with_features("b", shared=True).without("a"),
        named("a").with_features("b", "c", optional=True).without("c"),
    ],
)
def test_the_text_form_reads_back(schema: FeatureSchema) -> None:
    assert FeatureSchema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize(
    "text", ["", "{", "null", '{"features": [["x1", "a"]], "removed": []}', '{"features": []}']
)
def test_a_damaged_text_is_told(text: str) -> None:
    with pytest.raises(StoreError, match="its list of features cannot be read"):
        FeatureSchema.from_json(text)


def test_the_first_items_fix_names_and_number() -> None:
    assert NO_FEATURES.begun([ItemIn("x", [1.0, None])]) == FeatureSchema.positions(2)
    first = [ItemIn("w"), ItemIn("x", {"b": 1.0}), ItemIn("y", {"a": 1.0})]
    assert NO_FEATURES.begun(first) == named("b", "a")
    assert NO_FEATURES.begun([ItemIn("w")]) == NO_FEATURES
    assert named("c").begun(first) == named("c")


def test_features_come_and_go_and_their_columns_stay_theirs() -> None:
    schema = named("a", "b").without("a").with_features("c").with_features("d", shared=True)
    assert schema.keys == ("p1", "p2", "s0")
    again = schema.without("c").with_features("c").with_features("a")
    assert again.keys == ("p1", "s0", "p3", "p4")
    stored = again.pair.rows([ItemIn("x", {"a": 4.0, "b": 2.0, "c": 3.0})], missing_allowed=False)
    np.testing.assert_array_equal(stored, [[np.nan, 2.0, np.nan, 3.0, 4.0]])
    old = np.array([[9.0, 8.0, 7.0]], np.float32)  # written when there were a, b and the first c
    now, _ = again.joined(["x"], old, {})
    np.testing.assert_array_equal(now, [[8.0, np.nan, np.nan, np.nan]])
    assert again.renamed("b", "e").keys == again.keys
    assert FeatureSchema.positions(2).with_names(["a", "b"]) == named("a", "b")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda schema: schema.with_features("a"), "there is already a feature 'a'"),
        (lambda schema: schema.without("z"), "there is no feature 'z', only a, b"),
        (lambda schema: schema.without("a").without("b"), "'b' is the only feature"),
        (lambda schema: schema.renamed("a", "b"), "there is already a feature 'b'"),
        (lambda schema: schema.renamed("z", "y"), "there is no feature 'z'"),
        (lambda schema: schema.with_names(["x"]), "1 names for 0 features without a name"),
        (
            lambda _: FeatureSchema.positions(2).with_names(["x", "x"]),
            "there is already a feature 'x'",
        ),
        (lambda _: FeatureSchema.positions(2).without("1"), "only 2 without names"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(
    change: Callable[[FeatureSchema], object], told: str
) -> None:
    with pytest.raises(Problem, match=told):
        change(named("a", "b"))


@pytest.mark.parametrize(
    ("features", "told"),
    [
        ([1.0], "item 'x' has 1 features, not 2"),
        ({"a": 1.0}, "item 'x' lacks feature 'b'; missing values are rejected"),
        ({"a": 1.0, "b": None}, "item 'x' lacks feature 'b'"),
        ([None, 1.0], "item 'x' lacks feature 'a'"),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, "item 'x' has an unknown feature 'c' \\(known: a, b\\)"),
        ({"a": 1.0, "b": 1.0, "s": 1.0}, "'s', which all queries share: it belongs in PUT"),
        ([1e39, 1.0], "feature 'a' is 1e\\+39, too large"),
        ([math.nan, 1.0], "feature 'a' is nan"),
    ],
)
def test_what_does_not_fit_names_the_item_and_the_feature(features: object, told: str) -> None:
    schema = named("a", "b").with_features("s", shared=True)
    with pytest.raises(Problem, match=told):
        schema.pair.rows([ItemIn("x", features)], missing_allowed=False)  # type: ignore[arg-type]


def test_names_mean_nothing_where_features_have_none() -> None:
    told = "names its features.* Send a list of 1, or name them: `ebrank features STORE name`"
    with pytest.raises(Problem, match=told):
        FeatureSchema.positions(1).pair.rows([ItemIn("x", {"a": 1.0})], missing_allowed=False)


def test_missing_values_are_marked_and_filled() -> None:
    [row] = named("a", "b").pair.rows([ItemIn("x", {"b": 2.0})], missing_allowed=True)
    assert math.isnan(row[0])
    assert row[1] == 2.0
    matrix = np.array([[np.nan, 1.0, np.nan], [4.0, 3.0, np.nan]], np.float32)
    np.testing.assert_array_equal(filled(matrix, by_mean=False), [[0, 1, 0], [4, 3, 0]])
    np.testing.assert_array_equal(filled(matrix, by_mean=True), [[4, 1, 0], [4, 3, 0]])
    whole = np.ones((2, 2), np.float32)
    assert filled(whole, by_mean=True) is whole


@played()
async def test_items_that_do_not_fit_change_nothing(engine: Scene) -> None:
    with pytest.raises(Problem, match="2 features, not 1"):
        await engine.put_items("q", [ItemIn("a", [1.0]), ItemIn("b", [1.0, 2.0])])
    await engine.put_items("q", [ItemIn("a", [1.0, 2.0])])  # nothing was fixed by the first
    with pytest.raises(Problem, match="'b' has 1 features, not 2"):
        await engine.put_items("other", [ItemIn("c", [1.0, 1.0]), ItemIn("b", [1.0])])
    with pytest.raises(Problem, match="unknown query"):
        await engine.ranked("other")


@played()
async def test_names_in_the_settings_must_be_those_of_the_store(engine: Scene) -> None:
    """Features without names may get them later; then the store knows the names."""
    await engine.put_items("q", [ItemIn("a", [1.0, 2.0])])
    await engine.close()
    with pytest.raises(SettingsError, match="2 without names"):
        await engine.opened(settings(features={"names": ["x", "y", "z"]}))
    for chosen in (settings(features={"names": ["x", "y"]}), settings()):
        named_now = await engine.opened(chosen)
        await named_now.put_items("q", [ItemIn("b", {"y": 4.0, "x": 3.0})])
        await named_now.close()
    with pytest.raises(SettingsError, match=r"features.names: .* \(x, y\)"):
        await engine.opened(settings(features={"names": ["x", "z"]}))
    state = await engine.stored()
    assert state.features.tolist() == [[1.0, 2.0], [3.0, 4.0]]


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


async def priors(engine: Scene, query: str = "q") -> dict[str, float]:
    """Return the priors of a query's candidates."""
    live = await engine.live(query)
    prior = live.prior(engine.resources.active.model)
    names = live.ids.at(live.candidates.tolist())
    return dict(zip(names, [round(float(a), 5) for a in prior.a], strict=True))


async def change(
    engine: Scene, *, add: str = "", add_shared: str = "", remove: str = "", **renamed: str
) -> list[str]:
    """Change features, and return the changes in words."""
    added = [NewFeature(name) for name in add.split()]
    added += [NewFeature(name, shared=True) for name in add_shared.split()]
    request = ChangeFeaturesRequest(rename=renamed, remove=remove.split(), add=added)
    return (await engine.change_features(request)).changes


async def names(engine: Scene) -> list[str | None]:
    """Return the names of the features that items have."""
    return [feature.name for feature in (await engine.features()).features]


@played()
async def test_rows_that_are_written_meanwhile_do_not_stand_in_the_way(engine: Scene) -> None:
    put, others = engine.store.catalog.put, iter("cde")

    async def overtaken(rows: Sequence[NewItem], time: float, **named: Any) -> Any:  # noqa: ANN401
        """Write after another request has, the first times."""
        for name in itertools.islice(others, 1):
            await put([NewItem(name, (1.0,))], time)
        return await put(rows, time, **named)

    await engine.put_items("q", XY)
    engine.store.catalog.put = overtaken
    await change(engine, add="z", x="ex")
    assert await names(engine) == ["ex", "y", "z"]
    assert next(others, None) is None
    with pytest.raises(Problem, match="already a feature 'z'"):
        await change(engine, add="z")
    assert await names(engine) == ["ex", "y", "z"]


@played()
async def test_a_model_keeps_serving_by_what_its_features_are(engine: Scene) -> None:
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
    for each in (engine, await engine.opened()):
        assert await priors(each) == later
        assert await names(each) == ["y", "z", "x", "ex"]


@pytest.mark.parametrize(("rule", "expected"), [("zero", 0.0), ("mean", 3.0), ("reject", 3.0)])
@played(lambda rule: settings(features={"missing": rule}))
async def test_items_of_before_lack_a_new_feature(
    engine: Scene, rule: str, expected: float
) -> None:
    """What is refused of new items, once it is required, is filled for those stored before."""
    await engine.put_items("q", XY)
    [said] = await change(engine, add="z")
    assert said == "add z: 2 items of queries lack it until they are put again"
    assert len((await engine.ranked()).items) == 2
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
async def test_a_dry_run_changes_nothing_and_says_what_would(engine: Scene) -> None:
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
async def test_the_next_fit_uses_the_features_as_they_are(engine: Scene) -> None:
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
            served = await engine.ranked(f"q{query}")
            if turn % 2:
                await engine.clicked(served, "i4")
    job = TrainingJob(active=1)
    fitted = fit(await gather(engine.store, job), job)
    assert fitted.features == ("p1", "p2")
    assert fitted.previous_loss is not None
    later = await engine.opened()
    await later._adopt(fitted, against=1)
    assert later.version == 2
    view = await later.features()
    assert [each.weight is None for each in view.features] == [False, False]
    assert view.removed == []
    assert ids(await later.ranked("q0", explore=False))[0] == "i4"


async def load_a(engine: Scene) -> object:
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
        lambda engine: engine.ranked(items=NEW_Z),
        lambda engine: engine.put_items("q", NEW_Z),
        lambda engine: engine.put_catalog([ItemIn("a", {"s": 1.0, "t": 1.0})]),
        load_a,
    ],
)
@played(pair=True)
async def test_another_server_notices_a_change_when_items_do_not_fit_what_it_knows(
    engine: Scene, call: Callable[[Scene], Awaitable[object]]
) -> None:
    """Those that fit would make it notice; but perhaps all callers already send a new feature."""
    await engine.put_catalog([ItemIn(name, {"s": 1.0}) for name in "ab"])
    await engine.put_items("q", XY)
    with pytest.raises(Problem, match="unknown feature"):
        await call(engine.other)
    await change(engine, add="z", add_shared="t")
    await call(engine.other)


@played(pair=True)
async def test_another_server_notices_a_change_by_its_next_write(engine: Scene) -> None:
    await engine.put_items("q", XY)
    await engine._adopt(trained(2.0, -1.0, features=("p0", "p1")), against=0)
    await engine.other.ranked()
    await engine.other.ranked()
    assert await priors(engine.other) == scored(a=1.5, b=-1.0)
    await change(engine, remove="x", add="z")
    await engine.other.ranked()
    assert await priors(engine.other) == scored(a=-0.5, b=-1.0)
    await engine.other.put_items("q", [ItemIn("c", {"y": 1.0, "z": 2.0})])
    await change(engine, add="w")
    await change(engine.other, add="v")
    assert await names(engine.other) == ["y", "z", "w", "v"]
