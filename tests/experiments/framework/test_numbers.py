"""Numbers as papers print them, and as people say them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.numbers import counted, duration, number, p_text


@given(st.floats(-1e9, 1e9), st.integers(0, 6))
def test_a_number_reads_as_itself_rounded(value: float, digits: int) -> None:
    text = number(value, digits)
    assert float(text.replace("−", "-").replace(",", "")) == round(value, digits) + 0.0
    assert not text.startswith(("0.", "−0", "-"))
    assert len(text.partition(".")[2]) == digits


@given(st.floats(-1e3, 1e3), st.integers(0, 3))
def test_differences_say_their_direction(value: float, digits: int) -> None:
    sign = {True: "+", False: "−"}[value > 0] if round(abs(value), digits) else ""
    assert number(value, digits, signed=True) == sign + number(abs(value), digits)


def test_a_missing_number_is_a_dash() -> None:
    assert {number(value, 3) for value in (None, float("nan"), float("-inf"))} == {"–"}


@given(st.floats(0, 1e6))
def test_no_part_of_a_duration_overflows(seconds: float) -> None:
    parts = duration(seconds).split()
    assert all(
        float(part) < 60 for part, unit in zip(parts[::2], parts[1::2], strict=True) if unit != "h"
    )


def test_a_p_value_has_four_digits() -> None:
    assert p_text(0.05) == "p = .0500"


def test_a_count_has_its_noun() -> None:
    assert [counted(n, "query", "queries") for n in (0, 1, 2)] == [
        "0 queries",
        "1 query",
        "2 queries",
    ]
