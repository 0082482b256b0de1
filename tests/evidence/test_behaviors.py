from __future__ import annotations

import itertools

import pytest

from ebrank import ParameterError
from ebrank.evidence import CLICKS, Behavior, Behaviors

SHOP = Behaviors.of({"purchase": 1.0, "click": 0.25, "cart": 0.5})


def test_behaviors_are_sorted_by_worth() -> None:
    assert SHOP.names == ("click", "cart", "purchase")
    assert SHOP.weights == (0.25, 0.5, 1.0)
    assert [SHOP.outcome(name) for name in SHOP.names] == [1, 2, 3]
    assert SHOP.outcomes == 4
    assert Behaviors.of({"cart": 0.5, "purchase": 1.0, "click": 0.25}) == SHOP


def test_equal_weights_are_sorted_by_name() -> None:
    assert Behaviors.of({"b": 1, "a": 1}).names == ("a", "b")


def test_an_impression_keeps_its_most_valuable_outcome_in_any_order() -> None:
    for events in itertools.permutations([0, SHOP.outcome("purchase"), SHOP.outcome("click")]):
        outcome = 0
        for event in events:
            outcome = SHOP.better(outcome, event)
        assert outcome == SHOP.outcome("purchase")


def test_clicks_alone_are_the_default() -> None:
    assert (CLICKS.names, CLICKS.weights, CLICKS.outcomes) == (("click",), (1.0,), 2)


@pytest.mark.parametrize(
    ("name", "weight", "problem"),
    [
        ("", 1.0, "cannot name"),
        ("impression", 1.0, "cannot name"),
        (3, 1.0, "cannot name"),
        ("click", 0.0, "above 0"),
        ("click", -1.0, "above 0"),
        ("click", 1.5, "at most 1"),
        ("click", float("nan"), "above 0"),
        ("click", True, "above 0"),
        ("click", "1", "above 0"),
    ],
)
def test_a_behavior_needs_a_name_and_a_weight(name: str, weight: float, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        Behavior(name, weight)


def test_empty_ambiguous_and_unknown_declarations_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        Behaviors(())
    with pytest.raises(ParameterError, match="twice"):
        Behaviors((Behavior("click"), Behavior("click", 0.5)))
    with pytest.raises(ParameterError, match="'like'; known: click, cart, purchase"):
        SHOP.outcome("like")
