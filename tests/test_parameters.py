"""A parameter is declared once; everything reads the declaration."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import ParameterError
from ebrank.parameters import (
    Configured,
    Parameter,
    check_number,
    check_whole,
    declared,
    is_number,
    param,
    read_settings,
    to_text,
)


@dataclass(frozen=True)
class Sample(Configured):
    name, help = "sample", "One parameter of every kind."

    width: float = param(1.0, "at least 0", at_least=0, grid=(0.5, 1.0))
    share: float = param(0.5, "between 0 and 1", at_least=0, at_most=1)
    depth: float = param(-1.0, "at most 0", at_most=0)
    any: float = param(0.0, "any number")
    count: int = param(5, "a whole number", at_least=1)
    flag: bool = param(False, "yes or no")
    mode: str = param("fast", "one of two", choices=("fast", "slow"))
    part: str = param("mine", "one of one, or a class", choices=("mine",), open=True)
    note: str = param("x", "any text")
    ridge: float | None = param(None, "a number, or from the data", at_least=0, kind=float)


PARAMETERS = {parameter.name: parameter for parameter in declared(Sample)}


def test_a_declaration_says_all_there_is_to_say() -> None:
    width = PARAMETERS["width"]
    assert (width.default, width.help, width.grid) == (1.0, "at least 0", (0.5, 1.0))
    assert {name: parameter.domain for name, parameter in PARAMETERS.items()} == {
        "width": "a number of 0 or more",
        "share": "a number from 0 to 1",
        "depth": "a number of 0 or less",
        "any": "a number",
        "count": "a whole number of 1 or more",
        "flag": "true or false",
        "mode": "fast or slow",
        "part": "mine or module:Class",
        "note": "a text",
        "ridge": "a number of 0 or more, or auto",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("depth", 0.1),
        ("count", 2.0),
        ("flag", 1),
        ("part", "yours"),
        ("note", 3),
    ],
)
def test_values_out_of_range_are_refused_with_owner_parameter_and_range(
    name: str,
    value: Any,  # noqa: ANN401
) -> None:
    """Those of policies are, too: see `test_policies`."""
    with pytest.raises(ParameterError) as caught:
        Sample(**{name: value})
    assert str(caught.value) == f"sample: {name} takes {PARAMETERS[name].domain}, not {value!r}"


def test_values_have_the_type_of_the_parameter() -> None:
    sample = Sample(width=np.float32(2), count=np.int64(3), share=1, ridge=2)  # type: ignore[arg-type]
    assert sample == Sample(width=2.0, count=3, share=1.0, ridge=2.0)
    for value, kind in ((sample.width, float), (sample.count, int), (sample.ridge, float)):
        assert type(value) is kind
    assert Sample(part="module:Class").part == "module:Class"
    with pytest.raises(FrozenInstanceError):
        sample.width = 3.0  # type: ignore[misc]


def valued(parameter: Parameter) -> st.SearchStrategy[Any]:
    """Return values in a parameter's domain."""
    low, high = parameter.at_least, parameter.at_most
    if parameter.kind is bool:
        return st.booleans()
    if parameter.kind is int:
        return st.integers(int(low or 0), 10**9)
    if parameter.kind is str:
        return st.sampled_from(parameter.choices or ("x", "y=z", "a b"))
    numbers = st.floats(low, high, allow_nan=False, allow_infinity=False)
    return st.one_of(st.none(), numbers) if parameter.default is None else numbers


@given(st.fixed_dictionaries({name: valued(p) for name, p in PARAMETERS.items()}))
def test_any_values_read_back_from_their_text(values: dict[str, Any]) -> None:
    sample = Sample(**values)
    text = to_text("sample", declared(Sample), lambda name: getattr(sample, name))
    name, _, settings = text.partition(":")
    assert name == "sample"
    again = Sample(**read_settings(settings, name, lambda _: PARAMETERS))
    assert again == sample
    assert ("count=5" in text) is False  # defaults are left out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("widht=2", "sample has no parameter 'widht'; did you mean width?"),
        ("width=1,width=2", "sample: width is given twice"),
        ("width", "sample: width needs a value, as in width=1"),
        ("ridge=", "sample: ridge needs a value, as in ridge=auto"),
        ("width=wide", "sample: width takes a number of 0 or more, not 'wide'"),
        ("count=2.5", "sample: count takes a whole number of 1 or more, not '2.5'"),
        ("flag=1", "sample: flag takes true or false, not '1'"),
    ],
)
def test_mistakes_in_a_text_are_named(text: str, problem: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_settings(text, "sample", lambda _: PARAMETERS)
    assert str(caught.value).startswith(problem)


def test_forgotten_declarations_are_named() -> None:
    class Plain(Configured):
        name, help = "plain", "Lacks the decorator."

    @dataclass(frozen=True)
    class Bare(Configured):
        name, help = "bare", "Has a field without param."
        x: float = 1.0

    with pytest.raises(ParameterError, match=r"Plain needs the decorator @dataclass"):
        list(declared(Plain))
    with pytest.raises(ParameterError, match=r"declare x of Bare with param\(\.\.\.\)"):
        list(declared(Bare))


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int8(3)])
def test_numbers(value: object) -> None:
    assert is_number(value)
    check_number("x", value, above=0)
    check_number("x", value, at_least=0.5)


@pytest.mark.parametrize("value", [True, "1", None, float("nan"), float("inf"), 10**400, 1j, [1]])
def test_values_that_are_not_numbers(value: object) -> None:
    assert not is_number(value)
    with pytest.raises(ParameterError, match="x must be a number above 0"):
        check_number("x", value, above=0)


def test_whole_numbers_are_checked_by_name() -> None:
    check_whole("k", 3, at_least=1)
    check_whole("k", None, at_least=1, optional=True)
    for value in (0, 1.0, True, "1", None):
        with pytest.raises(ParameterError, match="k must be a whole number of 1 or more, not"):
            check_whole("k", value, at_least=1)
    with pytest.raises(ParameterError, match="1 or more or None, not 0"):
        check_whole("k", 0, at_least=1, optional=True)
