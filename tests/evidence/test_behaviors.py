from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import ParameterError
from ebrank.evidence import CLICKS, Behavior, Behaviors


def test_users_click_or_pass_unless_more_is_declared() -> None:
    assert CLICKS.names == ("click",)
    assert CLICKS.weights == (1.0,)
    assert CLICKS.outcomes == 2
    assert CLICKS.outcome("click") == 1


@given(st.dictionaries(st.text(min_size=1).filter(lambda t: t != "impression"), st.floats(1e-6, 1)))
def test_the_more_valuable_outcome_has_the_higher_number(weights: dict[str, float]) -> None:
    if not weights:
        return
    behaviors = Behaviors.of(weights)
    assert sorted(behaviors.weights) == list(behaviors.weights)
    assert {name: behaviors.weights[behaviors.outcome(name) - 1] for name in weights} == weights
    assert behaviors == Behaviors.of(dict(reversed(weights.items())))
    for name in weights:
        for other in weights:
            better = behaviors.better(behaviors.outcome(name), behaviors.outcome(other))
            assert behaviors.weights[better - 1] == max(weights[name], weights[other])
        assert behaviors.better(0, behaviors.outcome(name)) == behaviors.outcome(name)


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ({}, "at least one"),
        ({"": 1.0}, "cannot name"),
        ({"impression": 1.0}, "cannot name"),
        ({3: 1.0}, "cannot name"),
        ({"click": 0.0}, "the weight of click must be a number above 0"),
        ({"click": 1.5}, "at most 1"),
        ({"click": float("nan")}, "the weight of click"),
        ({"click": "1"}, "the weight of click"),
    ],
)
def test_what_is_no_declaration_is_refused(weights: dict[str, float], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        Behaviors.of(weights)


def test_names_are_unique_and_known() -> None:
    with pytest.raises(ParameterError, match="declared twice"):
        Behaviors((Behavior("click"), Behavior("click", 0.5)))
    with pytest.raises(ParameterError, match="no behavior is called 'like'; known: click"):
        CLICKS.outcome("like")
