from __future__ import annotations

import json

import pytest

from ebrank.experiments.framework.figures import Figure
from ebrank.experiments.framework.outcome import Cell, Finding, Table, from_plain, to_plain
from tests.report.sample import PERFORMANCE, over_time

FIGURE = Figure("f", "Over time", "", (over_time(),))


@pytest.mark.parametrize(
    "value", [PERFORMANCE, FIGURE, Finding("x", "it holds", "confirmed", "by 3")]
)
def test_values_are_read_back_as_written(value: object) -> None:
    assert from_plain(type(value), json.loads(json.dumps(to_plain(value)))) == value


def test_a_later_field_is_ignored_and_whole_numbers_are_floats() -> None:
    assert from_plain(Table, to_plain(PERFORMANCE) | {"later": 1}) == PERFORMANCE
    assert isinstance(from_plain(Cell, {"value": 3}).value, float)
