from __future__ import annotations

import pytest

from ebrank import ParameterError
from ebrank.evidence import Behavior, Behaviors, BehaviorStats, Examination

SHOP = Behaviors.of({"purchase": 1.0, "click": 0.25, "cart": 0.5})


def test_behaviors_are_sorted_by_worth() -> None:
    assert SHOP.names == ("click", "cart", "purchase")
    assert SHOP.weights == (0.25, 0.5, 1.0)
    assert [SHOP.outcome(name) for name in SHOP.names] == [1, 2, 3]
    assert SHOP.outcomes == 4
    assert Behaviors.of({"cart": 0.5, "purchase": 1.0, "click": 0.25}) == SHOP


def test_after_a_negative_behavior_an_impression_is_worth_nothing() -> None:
    shop = Behaviors.parse(["click=0.2", "purchase"], ["return"])
    stats = BehaviorStats.zeros(1, behaviors=shop)
    stats.record([0], [shop.outcome("return")])
    assert (stats.shown.tolist(), stats.clicks.tolist()) == ([1], [0])
    assert stats.sums(Examination()).clicks.tolist() == [0.0]


@pytest.mark.parametrize(
    ("type", "value", "name"),
    [
        ("click", None, "click"),
        ("click", 5.0, "click"),
        ("dwell", 9.9, None),
        ("dwell", 10.0, "dwell>=10"),
        ("dwell", 60.5, "dwell>=60"),
        ("dwell", None, None),
        ("return", None, "return"),
        ("hover", None, None),
        ("dwell>=10", 99.0, None),
    ],
)
def test_events_are_the_best_behavior_whose_threshold_they_reach(
    type: str, value: float | None, name: str | None
) -> None:
    shop = Behaviors.parse(["dwell >= 60 = 0.8", "dwell>=10=0.3", "click=0.2"], ["return"])
    assert shop.names == ("click", "dwell>=10", "dwell>=60")
    assert shop.of_event(type, value) == name


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("click=much", "'click=much' has no weight: write click=0.5"),
        ("dwell>=30=much", "'dwell>=30=much' has no weight: write dwell>=30=0.5"),
        ("dwell>=long", "'dwell>=long' has no threshold"),
        ("dwell>=", "has no threshold"),
        ("dwell>=inf=0.5", "has no threshold"),
        (">=3", "cannot name a behavior"),
        ("impression>=3", "cannot name a behavior"),
        ("click=2", "at most 1"),
    ],
)
def test_what_is_no_declaration_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        Behavior.parse(text)


@pytest.mark.parametrize("name", ["", "impression", "click", "dwell"])
def test_a_negative_behavior_has_a_name_of_its_own(name: str) -> None:
    with pytest.raises(ParameterError, match="cannot name a negative behavior"):
        Behaviors.parse(["click", "dwell>=3=0.5"], [name])


@pytest.mark.parametrize(
    ("name", "weight", "problem"),
    [
        *(("", 1.0, "cannot name"), (3, 1.0, "cannot name")),
        *(("click", weight, "above 0") for weight in (0.0, True, "1")),
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
