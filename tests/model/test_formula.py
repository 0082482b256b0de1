"""Formulas put together from functions: plain and compiled agree, and mistakes are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, ParameterError
from ebrank.model.formula import BATCH, Formula, Score, Source
from ebrank.model.prior import ItemPrior
from ebrank.model.scoring import scores

QUANTITIES = ("a", "b", "shown", "clicks", "weighted_clicks", "exposure")
CURVE = Examination(cutoff=4)


ITEMS = BATCH + 7


def some_items(seed: int = 0) -> tuple[ItemPrior, BehaviorStats, dict[str, Any]]:
    """Return items, and their quantities by name as a plain call takes them."""
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, 9, (ITEMS, 5))
    stats = BehaviorStats.of(shown, rng.binomial(shown, 0.4))
    prior = ItemPrior(rng.random(ITEMS), rng.random(ITEMS))
    return prior, stats, {"a": prior.a, "b": prior.b, **stats.sums(CURVE)._asdict()}


def function(text: str) -> Callable[..., Any]:
    """Return a function that lives in no file: its machine code is kept nowhere."""
    names: dict[str, Any] = {}
    exec(compile(text, "<a test>", "exec"), names)
    made: Callable[..., Any] = names["f"]
    made.__module__ = __name__
    return made


# --- composition ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Composition:
    """A random formula, and the values of its parameters."""

    formula: Formula
    parameters: dict[str, float]
    text: str


@st.composite
def compositions(draw: st.DrawFn) -> Composition:
    """Draw up to five quantities, each of those before it, and a function on top of them."""
    parameters = {f"t{i}": draw(st.floats(-2, 2)) for i in range(draw(st.integers(0, 3)))}
    known = [*QUANTITIES, *parameters]
    given: dict[str, Source] = {}
    texts = []

    def body() -> Callable[..., Any]:
        names = draw(st.lists(st.sampled_from(known), min_size=0, max_size=4, unique=True))
        terms = [f"{draw(st.floats(-2, 2))!r} * {name}" for name in names]
        text = f"def f({', '.join(names)}):\n    return {' + '.join(terms) or '0.25'}\n"
        texts.append(text)
        return function(text)

    for i in range(draw(st.integers(0, 5))):
        source = draw(st.sampled_from(["function", "alias", "constant"]))
        if source == "function":
            given[f"q{i}"] = body()
        elif source == "alias":
            given[f"q{i}"] = draw(st.sampled_from(known))
        else:
            given[f"q{i}"] = draw(st.floats(-2, 2))
        known.append(f"q{i}")
    before = tuple(name for name in given if draw(st.booleans()))
    formula = Formula(body(), *parameters, given=given, before=before)
    return Composition(formula, parameters, "\n".join(texts))


@pytest.mark.slow
@settings(max_examples=15)
@given(compositions(), st.integers(0, 99))
def test_a_composed_formula_compiles_to_what_plain_python_computes(
    drawn: Composition, seed: int
) -> None:
    prior, stats, quantities = some_items(seed)
    plain = drawn.formula(**quantities, **drawn.parameters)
    compiled = scores(drawn.formula.bind(None, **drawn.parameters), prior, stats, CURVE)
    np.testing.assert_allclose(compiled, np.broadcast_to(plain, ITEMS), rtol=1e-12, atol=1e-12)


def test_each_quantity_is_computed_once() -> None:
    formula = Formula(
        lambda left, right: left + right,
        given={
            "left": lambda shared, exposure: shared * exposure,
            "right": lambda shared, exposure: shared - exposure,
            "shared": lambda clicks, shown: clicks / (shown + 1.0),
        },
    )
    text = formula.text()
    assert text.count("shared_ =") == text.count("exposure_ =") == text.count("clicks_ =") == 1
    assert "weighted_clicks_ =" not in text  # nothing that is not needed
    _, _, quantities = some_items()
    rate = quantities["clicks"] / (quantities["shown"] + 1.0)
    exposure = quantities["exposure"]
    np.testing.assert_allclose(formula(**quantities), rate * exposure + rate - exposure)


def test_counts_and_keys_reach_a_function_too() -> None:
    def first_rank(counts: Any, slots: int, behaviors: int, table: Any) -> float:  # noqa: ANN401
        return float(counts[0] + 100.0 * counts[slots] + 1000.0 * slots + 10_000.0 * behaviors)

    def keyed(key: np.uint64) -> float:
        return float(key % np.uint64(1000))

    prior, stats, _ = some_items()
    found = scores(Formula(first_rank).bind(), prior, stats, CURVE)
    shown, clicks = stats.counts[:, 0, 0], stats.counts[:, 1, 0]
    np.testing.assert_array_equal(found, shown + 100.0 * clicks + 15_000.0)
    keys = np.arange(ITEMS, dtype=np.uint64) + np.uint64(2**63)
    np.testing.assert_array_equal(
        scores(Formula(keyed).bind(), prior, stats, CURVE, keys), keys % np.uint64(1000)
    )


def test_what_comes_before_is_computed_in_a_loop_of_its_own_if_needed() -> None:
    given: dict[str, Source] = {
        "early": lambda both: both + 1.0,
        "both": lambda a, b: a * b,
        "unused": lambda a: a,
    }
    formula = Formula(lambda early, both: early - both, given=given, before=("early", "unused"))
    lines = [line.strip() for line in formula.text().splitlines()]
    assert lines.count("for i in range(items):") == 2
    assert "unused" not in formula.text()


def test_a_function_may_be_given_by_its_path() -> None:
    formula = Formula(
        "ebrank.equations:relevance",
        given={"hits": "clicks", "trials": "exposure", "alpha": "a", "beta": "b"},
    )
    prior, stats, quantities = some_items()
    expected = (quantities["clicks"] + prior.a) / (quantities["exposure"] + prior.a + prior.b)
    np.testing.assert_allclose(formula(**quantities), expected)
    np.testing.assert_allclose(scores(formula.bind(), prior, stats, CURVE), expected)


# --- mistakes ------------------------------------------------------------------------------------


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    def my_score(a: float, klicks: float) -> float:
        return a + klicks

    with pytest.raises(ParameterError, match=r"my_score takes 'klicks'.*clicks") as caught:
        Formula(my_score).text()
    assert "nor declared as a parameter" in str(caught.value)
    with pytest.raises(ParameterError, match="needs 'klicks'"):
        Formula(my_score)(a=1.0, clicks=2.0)
    with pytest.raises(ParameterError, match="my_score takes 'klicks'"):
        Formula(lambda x: x, given={"x": my_score}).check()
    with pytest.raises(ParameterError, match="takes 'lost'"):
        Formula(lambda x: x, given={"x": "lost"}).check()


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"x": lambda x: x}, "x → x"),
        ({"x": "y", "y": "x"}, "x → y → x"),
        ({"x": lambda y: y, "y": lambda z: z, "z": lambda x: x}, "x → y → z → x"),
        ({"x": "y", "y": lambda x: x}, "x → y → x"),
    ],
)
def test_a_cycle_is_refused_with_its_path(given: dict[str, Source], path: str) -> None:
    formula = Formula(lambda x: x, given=given)
    for attempt in (formula.text, formula.check, lambda: formula(a=1.0)):
        with pytest.raises(ParameterError, match=f"x depends on itself: {path}"):
            attempt()


def test_parameters_are_bound_by_name_all_of_them() -> None:
    formula = Formula(lambda a, s, t: a * s + t, "s", "t")
    with pytest.raises(ParameterError, match="has the parameters s, t, not s"):
        formula.bind(s=1.0)
    with pytest.raises(ParameterError, match="not s, t, u"):
        formula.bind(s=1.0, t=2.0, u=3.0)
    with pytest.raises(ParameterError, match="the parameters none, not s"):
        Formula(lambda a: a).bind(s=1.0)
    with pytest.raises(ParameterError, match="needs 't'"):
        formula(a=1.0, s=2.0)
    assert formula.bind(t=2.0, s=1.0).parameters[:2].tolist() == [1.0, 2.0]
    with pytest.raises(ParameterError, match=r"Formula\.bind"):
        Score(formula, np.zeros(2))
    with pytest.raises(ParameterError, match="a quantity is called 'clicks'"):
        Formula(lambda clicks: clicks, "clicks").text()


def test_functions_yet_to_import_are_trusted_until_they_are_used() -> None:
    formula = Formula("no_such_module:function")
    formula.check()
    with pytest.raises(ModuleNotFoundError):
        formula.text()
