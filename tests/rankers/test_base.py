from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination
from ebrank.rankers import registry
from ebrank.rankers.base import REGISTRY, Ranker, Trial, param
from tests.simulation.tiny import tiny


@contextmanager
def one_more_ranker() -> Iterator[type[Any]]:
    """A ranker with a parameter of each kind, for a while known as one of ebrank's own."""

    @dataclass(frozen=True)
    class MadeUp(Ranker):
        __module__ = "ebrank.rankers.base"
        name = "madeup"
        help = "Made up."
        settings = ("none", "concate")

        rate: float = param(0.5, "a rate", at_least=0)
        shift: float = param(0.0, "any number")
        times: int = param(3, "a count", at_least=1)
        share: float = param(0.5, "a share", at_least=0, at_most=1)
        loss: float = param(-1.0, "a loss", at_most=0)
        fast: bool = param(True, "a flag")
        features: Literal["none", "concate"] = param(
            "none", "a choice", choices=("none", "concate")
        )

    try:
        yield MadeUp
    finally:
        del REGISTRY["madeup"]


@pytest.fixture
def made_up() -> Iterator[type[Any]]:
    with one_more_ranker() as ranker:
        yield ranker


GOOD: list[dict[str, Any]] = [
    {},
    {"rate": 0},
    {"rate": 7, "shift": -2.5, "times": 1, "fast": False, "features": "concate"},
    {"shift": -1e300},
    {"times": 10**30},
    {"share": 0, "loss": 0},
    {"share": 1.0, "loss": -1e300},
]

BAD: list[dict[str, Any]] = [
    {"rate": -0.1},
    {"rate": float("nan")},
    {"rate": float("inf")},
    {"rate": "1"},
    {"rate": True},
    {"rate": None},
    {"times": 0},
    {"times": 1.0},
    {"times": False},
    {"share": -0.1},
    {"share": 1.1},
    {"loss": 0.1},
    {"fast": 1},
    {"fast": "true"},
    {"features": "some"},
    {"features": 0},
]


@pytest.mark.parametrize("values", GOOD, ids=str)
def test_parameters_in_range_are_taken(made_up: type[Any], values: dict[str, Any]) -> None:
    ranker = made_up(**values)
    assert registry.parse(str(ranker)) == ranker


@pytest.mark.parametrize("values", BAD, ids=str)
def test_parameters_out_of_range_are_refused(made_up: type[Any], values: dict[str, Any]) -> None:
    (name,) = values
    with pytest.raises(ParameterError, match=f"^madeup: {name} takes .*, not "):
        made_up(**values)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rate=much", "madeup: rate takes a number of 0 or more, not 'much'"),
        ("rate=-1", "madeup: rate takes a number of 0 or more, not -1.0"),
        ("rate=1e999", "madeup: rate takes a number of 0 or more, not inf"),
        ("shift=nan", "madeup: shift takes a number, not nan"),
        ("times=2.5", "madeup: times takes a whole number of 1 or more, not '2.5'"),
        ("share=2", "madeup: share takes a number from 0 to 1, not 2.0"),
        ("fast=maybe", "madeup: fast takes true or false, not 'maybe'"),
        ("features=all", "madeup: features takes none or concate, not 'all'"),
    ],
)
def test_texts_out_of_range_are_refused(made_up: type[Any], text: str, problem: str) -> None:
    with pytest.raises(ParameterError) as refused:
        registry.parse(f"madeup:{text}")
    assert str(refused.value) == problem


@given(st.floats(0, 1e308), st.floats(-1e308, 1e308), st.integers(1), st.booleans())
def test_text_form_keeps_every_digit(rate: float, shift: float, times: int, fast: bool) -> None:
    with one_more_ranker() as made_up:
        ranker = made_up(rate=rate, shift=shift, times=times, fast=fast)
        assert registry.parse(str(ranker)) == ranker


def test_text_form_leaves_defaults_out(made_up: type[Any]) -> None:
    assert str(made_up()) == "madeup"
    assert str(made_up(rate=0.5)) == "madeup"
    assert str(made_up(fast=False, times=4)) == "madeup:times=4,fast=false"
    assert registry.parse("madeup:fast=FALSE") == made_up(fast=False)


def test_declarations_can_be_read(made_up: type[Any]) -> None:
    declared = {parameter.name: parameter for parameter in made_up().parameters()}
    assert list(declared) == ["rate", "shift", "times", "share", "loss", "fast", "features"]
    assert declared["rate"].help == "a rate"
    assert declared["rate"].domain == "a number of 0 or more"
    assert declared["shift"].domain == "a number"
    assert declared["times"].domain == "a whole number of 1 or more"
    assert declared["share"].domain == "a number from 0 to 1"
    assert declared["loss"].domain == "a number of 0 or less"
    assert declared["fast"].domain == "true or false"
    assert declared["features"].domain == "none or concate"


def test_the_setting_is_that_of_the_features(made_up: type[Any]) -> None:
    assert made_up().setting == "none"
    assert registry.parse("madeup:features=concate").setting == "concate"
    assert registry.parse("ebrank").setting == "non-concate"


def test_rankers_do_not_change(made_up: type[Any]) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        made_up().rate = 1.0


def test_a_ranker_must_say_how_it_learns(made_up: type[Any]) -> None:
    data = tiny()
    stats = BehaviorStats.zeros(data.n_rows)
    trial = Trial(data, np.zeros(data.n_rows), stats, Examination(), np.uint64(1))
    with pytest.raises(TypeError, match="MadeUp must define the method learner"):
        made_up().learner(trial)
