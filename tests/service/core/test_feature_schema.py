from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from ebrank.environment.config import SettingsError
from ebrank.service.api import ItemIn
from ebrank.service.core.feature_schema import NO_FEATURES, FeatureSchema, filled
from ebrank.service.core.problems import Problem
from ebrank.service.engine import Engine
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import Opened, played, ranked, settings, stored


def named(*names: str) -> FeatureSchema:
    return NO_FEATURES.with_features(names)


@pytest.mark.parametrize(
    "schema",
    [
        NO_FEATURES,
        FeatureSchema.positions(3),
        named("a", "é").with_feature("b", shared=True).without("a"),
        named("a").with_feature("b", optional=True).with_feature("c", optional=True).without("c"),
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
    schema = named("a", "b").without("a").with_feature("c").with_feature("d", shared=True)
    assert schema.keys == ("p1", "p2", "s0")
    again = schema.without("c").with_feature("c").with_feature("a")
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
        (lambda schema: schema.with_feature("a"), "there is already a feature 'a'"),
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
    schema = named("a", "b").with_feature("s", shared=True)
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
async def test_items_that_do_not_fit_change_nothing(engine: Engine) -> None:
    with pytest.raises(Problem, match="2 features, not 1"):
        await engine.put_items("q", [ItemIn("a", [1.0]), ItemIn("b", [1.0, 2.0])])
    await engine.put_items("q", [ItemIn("a", [1.0, 2.0])])  # nothing was fixed by the first
    with pytest.raises(Problem, match="'b' has 1 features, not 2"):
        await engine.put_items("other", [ItemIn("c", [1.0, 1.0]), ItemIn("b", [1.0])])
    with pytest.raises(Problem, match="unknown query"):
        await ranked(engine, "other")


@pytest.mark.parametrize("rule", ["zero", "mean"])
@played(lambda rule: settings(features={"missing": rule}))
async def test_missing_values_may_be_allowed(engine: Engine, rule: str) -> None:
    await engine.put_items("q", [ItemIn("a", {"x": 1.0}), ItemIn("b", {"y": 2.0})])
    assert len((await ranked(engine)).items) == 2


@played()
async def test_names_in_the_settings_must_be_those_of_the_store(
    engine: Engine, store: MemoryStore, opened: Opened
) -> None:
    """Features without names may get them later; then the store knows the names."""
    await engine.put_items("q", [ItemIn("a", [1.0, 2.0])])
    await engine.close()
    with pytest.raises(SettingsError, match="2 without names"):
        await opened(settings(features={"names": ["x", "y", "z"]}))
    for chosen in (settings(features={"names": ["x", "y"]}), settings()):
        named_now = await opened(chosen)
        await named_now.put_items("q", [ItemIn("b", {"y": 4.0, "x": 3.0})])
        await named_now.close()
    with pytest.raises(SettingsError, match=r"features.names: .* \(x, y\)"):
        await opened(settings(features={"names": ["x", "z"]}))
    state = await stored(store)
    assert state.features.tolist() == [[1.0, 2.0], [3.0, 4.0]]
