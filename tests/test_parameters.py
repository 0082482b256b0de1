from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import ParameterError
from ebrank.parameters import (
    Configured,
    Parameter,
    check_number,
    check_whole,
    declared,
    near,
    param,
    read_settings,
    to_text,
    typed,
)


@dataclass(frozen=True)
class Example(Configured):
    """One parameter of each kind."""

    name = "example"
    help = "An example."

    rate: float = param(0.5, "a rate", at_least=0)
    share: float = param(0.5, "a share", at_least=0, at_most=1)
    loss: float = param(-1.0, "a loss", at_most=0)
    shift: float = param(0.0, "any number")
    times: int = param(3, "a count", at_least=1, grid=(1, 3))
    fast: bool = param(True, "a flag")
    mode: str = param("a", "a choice", choices=("a", "b"))
    part: str = param("x", "an open choice", choices=("x",), open=True)
    label: str = param("l", "any text")
    ridge: float | None = param(None, "by the data", at_least=0, kind=float)


PARAMETERS = {parameter.name: parameter for parameter in declared(Example)}


def read(text: str) -> Example:
    return Example(**read_settings(text, "example", lambda _: PARAMETERS))


def text_of(example: Example) -> str:
    return to_text("example", declared(Example), lambda name: getattr(example, name))


@given(
    st.builds(
        Example,
        rate=st.floats(0, 1e9),
        share=st.floats(0, 1),
        loss=st.floats(-1e9, 0),
        shift=st.floats(-1e300, 1e300),
        times=st.integers(1, 10**9),
        fast=st.booleans(),
        mode=st.sampled_from(["a", "b"]),
        part=st.sampled_from(["x", "module:Class"]),
        ridge=st.none() | st.floats(0, 1e6),
    )
)
def test_text_reads_back_as_the_same_values(example: Example) -> None:
    name, _, settings = text_of(example).partition(":")
    assert name == "example"
    assert read(settings) == example


def test_text_leaves_defaults_out() -> None:
    assert text_of(Example()) == "example"
    assert text_of(Example(fast=False, times=4, rate=20.0)) == "example:rate=20,times=4,fast=false"
    assert text_of(Example(ridge=0.5)) == "example:ridge=0.5"


def test_values_get_the_parameter_s_own_type() -> None:
    of_numpy: dict[str, Any] = {"rate": np.float32(2), "times": np.int64(4)}
    example = Example(**of_numpy, share=1)
    assert [type(value) for value in (example.rate, example.times, example.share)] == [
        float,
        int,
        float,
    ]
    assert read("fast=FALSE").fast is False
    assert read("ridge=auto").ridge is None


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"rate": -0.1}, "example: rate takes a number of 0 or more, not -0.1"),
        ({"rate": math.nan}, "rate takes"),
        ({"rate": math.inf}, "rate takes"),
        ({"rate": 10**400}, "rate takes"),
        ({"rate": True}, "rate takes"),
        ({"rate": "1"}, "rate takes"),
        ({"rate": None}, "rate takes"),
        ({"share": 1.1}, "share takes a number from 0 to 1, not 1.1"),
        ({"loss": 0.5}, "loss takes a number of 0 or less"),
        ({"shift": "x"}, "shift takes a number, not 'x'"),
        ({"times": 0}, "times takes a whole number of 1 or more, not 0"),
        ({"times": 2.0}, "times takes a whole number"),
        ({"fast": 1}, "fast takes true or false, not 1"),
        ({"mode": "c"}, "mode takes a or b, not 'c'"),
        ({"mode": "m:C"}, "mode takes a or b"),
        ({"part": "y"}, "part takes x or module:Class, not 'y'"),
        ({"label": 3}, "label takes a text, not 3"),
        ({"ridge": -1.0}, "ridge takes a number of 0 or more, or auto, not -1.0"),
    ],
)
def test_values_out_of_range_are_refused_in_words(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        Example(**values)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rate=much", "example: rate takes a number of 0 or more, not 'much'"),
        ("times=2.5", "times takes a whole number of 1 or more, not '2.5'"),
        ("times=auto", "times takes"),
        ("fast=yes", "fast takes true or false, not 'yes'"),
        ("rat=1", "example has no parameter 'rat'; did you mean rate"),
        ("zzzzzz=1", r"no parameter 'zzzzzz'\. Known: rate, share"),
        ("rate=1,rate=2", "example: rate is given twice"),
        ("rate", "rate needs a value, as in rate=0.5"),
        ("rate=", "rate needs a value"),
        ("ridge=", "ridge needs a value, as in ridge=auto"),
    ],
)
def test_texts_out_of_range_are_refused_in_words(text: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        read(text)


def test_an_empty_text_changes_nothing() -> None:
    assert read("") == read(",") == Example()


def test_a_class_must_declare_its_fields() -> None:
    @dataclass(frozen=True)
    class Undeclared(Configured):
        name, help = "undeclared", "No param."
        width: float = 1.0

    class Bare(Configured):
        name, help = "bare", "No dataclass."

    with pytest.raises(ParameterError, match=r"declare width of Undeclared by param"):
        Undeclared()
    with pytest.raises(ParameterError, match=r"Bare needs the decorator @dataclass"):
        list(declared(Bare))


def test_declarations_can_be_read() -> None:
    times = PARAMETERS["times"]
    assert isinstance(times, Parameter)
    assert (times.default, times.help, times.grid, times.kind) == (3, "a count", (1, 3), int)
    assert PARAMETERS["ridge"].kind is float


def test_typed_is_how_people_type() -> None:
    assert [typed(value) for value in (1e-6, 20.0, 3, False)] == ["1e-06", "20", "3", "false"]


def test_near_says_when_there_is_nothing_to_know() -> None:
    assert near("x", []) == "; it has none."


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None])
def test_check_number_refuses(bad: object) -> None:
    with pytest.raises(ParameterError, match="size must be a number above 0"):
        check_number("size", bad, above=0)
    check_number("size", 0, at_least=0)


@pytest.mark.parametrize("bad", [0, 1.0, True, "1", None])
def test_check_whole_refuses(bad: object) -> None:
    with pytest.raises(ParameterError, match="size must be a whole number of 1 or more, not"):
        check_whole("size", bad, at_least=1)
    check_whole("size", np.int32(1), at_least=1)
    check_whole("size", None, at_least=1, optional=True)
