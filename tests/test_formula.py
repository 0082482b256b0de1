from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination
from ebrank.errors import ParameterError
from ebrank.formula import SUMS_LOSS, Formula, Score, arguments_of, loaded
from ebrank.priors import ItemPrior
from ebrank.scoring import scores


def halved(a: float) -> float:
    return a / 2


def compiled_value(score: Score, a: float, b: float, stats: BehaviorStats) -> float:
    """Return the score of one item, by the compiled function."""
    prior = ItemPrior(np.array([a]), np.array([b]))
    return float(scores(score, prior, stats, Examination())[0])


COMPOSED = Formula(
    lambda relevance, certainty, epsilon: relevance + epsilon * certainty,
    "epsilon",
    given={
        "relevance": lambda hits, trials, alpha, beta: (hits + alpha) / (trials + alpha + beta),
        "certainty": lambda relevance, exposure, alpha: relevance / (exposure + alpha + 5.0) ** 2,
        "hits": "clicks",
        "trials": "exposure",
        "alpha": "a",
        "beta": 5.0,
    },
)


@given(st.floats(0.01, 10), st.integers(0, 50), st.integers(0, 50), st.floats(0, 100))
def test_compiled_equals_plain(a: float, passed: int, clicks: int, epsilon: float) -> None:
    stats = BehaviorStats.of(shown=[[0, 0, passed + clicks]], clicks=[[0, 0, clicks]])
    exposure = 0.5 * (passed + clicks)
    plain = COMPOSED(a=a, clicks=clicks, exposure=exposure, epsilon=epsilon)
    compiled = compiled_value(COMPOSED.bind(epsilon=epsilon), a, 0.0, stats)
    assert compiled == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a, b: a - b, -1.0),
        (lambda shown: shown, 7.0),
        (lambda clicks: clicks, 3.0),
        (lambda weighted_clicks: weighted_clicks, 5.0),
        (lambda exposure: exposure, 5.0),
        (lambda counts, slots, behaviors: counts[slots + 2] + 100 * slots + 1000 * behaviors, 1302),
        (lambda table, slots: table[slots] / 2.0**30, 1.0),
        (lambda: 0.25, 0.25),
        ("tests.test_formula:halved", 1.0),
    ],
)
def test_a_function_may_name_every_quantity(
    function: Callable[..., Any] | str, expected: float
) -> None:
    stats = BehaviorStats.of(shown=[[3, 0, 4]], clicks=[[1, 0, 2]])
    assert compiled_value(Formula(function).bind(), 2.0, 3.0, stats) == pytest.approx(expected)


def test_the_key_addresses_draws() -> None:
    score = Formula(lambda key: float(key % 1000)).bind()
    prior = ItemPrior(np.zeros(3), np.zeros(1))
    keys = np.array([5, 1007, 11], np.uint64)
    out = scores(score, prior, BehaviorStats.zeros(3), Examination(), keys)
    assert out.tolist() == [5.0, 7.0, 11.0]


def test_each_quantity_is_computed_once() -> None:
    text = COMPOSED.text()
    assert text.count("relevance_ =") == text.count("clicks =") == text.count("exposure =") == 1
    assert "weighted_clicks =" not in text  # what nobody names is not computed


def test_plain_arrays_broadcast() -> None:
    many = COMPOSED(a=np.array([1.0, 2.0]), clicks=3.0, exposure=10.0, epsilon=0.0)
    np.testing.assert_allclose(many, [4 / 16, 5 / 17])


def test_constants_and_names_explain_quantities() -> None:
    formula = Formula(lambda x, y: x + y, given={"x": "y", "y": 2, "a": "a"})
    assert formula() == 4
    assert compiled_value(formula.bind(), 0.0, 0.0, BehaviorStats.zeros(1)) == 4.0


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        (Formula(lambda c: c), r"takes 'c', which is neither a quantity \(a, b, .*shown"),
        (Formula(lambda a: a, "a"), "a quantity is called 'a'; rename the parameter"),
        (Formula(lambda x: x, "x", given={"x": 1.0}), "a quantity is called 'x'"),
        (
            Formula(lambda x: x, given={"x": lambda y: y, "y": lambda x: x}),
            "x depends on itself: x → y → x",
        ),
        (Formula(lambda x: x, given={"x": "y", "y": "x"}), "x → y → x"),
        (Formula(lambda shown: shown, frame=SUMS_LOSS), "takes 'shown', which is neither"),
    ],
)
def test_composition_errors_are_found_before_anything_runs(formula: Formula, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        formula.check()


def test_plain_calls_find_the_same_errors() -> None:
    with pytest.raises(ParameterError, match="the formula needs 'a'"):
        Formula(lambda a: a)()
    loop = Formula(lambda x: x, given={"x": lambda y: y, "y": lambda x: x})
    with pytest.raises(ParameterError, match="depends on itself"):
        loop()


def test_functions_yet_to_import_are_trusted_until_they_are_used() -> None:
    formula = Formula("no_such_module:function")
    formula.check()
    with pytest.raises(ModuleNotFoundError):
        formula.text()


def test_bind_takes_all_parameters_and_no_others() -> None:
    formula = Formula(lambda a, t: a * t, "t")
    assert formula.bind(t=2).parameters.tolist() == [2.0, 0.0]
    with pytest.raises(ParameterError, match="has the parameters t, not none"):
        formula.bind()
    with pytest.raises(ParameterError, match="has the parameters t, not t, u"):
        formula.bind(t=1.0, u=2.0)
    with pytest.raises(ParameterError, match="has the parameters none, not t"):
        Formula(lambda a: a).bind(t=1.0)


@pytest.mark.parametrize(
    "parameters", [np.array([1.0]), np.array([1, 2]), np.zeros((2, 2)), [1.0, 2.0]]
)
def test_parameters_that_a_kernel_would_overrun_are_refused(parameters: Any) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError, match=r"Formula\.bind"):
        Score(Formula(lambda a, t: a * t, "t"), parameters)


def test_helpers() -> None:
    def defaults(a: float, b: float, *rest: float, c: float = math.pi) -> float:
        return a + b + sum(rest) + c

    assert arguments_of(defaults) == ("a", "b")
    assert loaded("math:sqrt") is math.sqrt
    assert loaded(halved) is halved
