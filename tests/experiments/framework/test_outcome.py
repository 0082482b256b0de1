from __future__ import annotations

import json

import pytest

from ebrank.errors import DataError
from ebrank.experiments.framework.figures import Figure
from ebrank.experiments.framework.outcome import Cell, Finding, Table, from_plain, to_plain
from tests.report.sample import PERFORMANCE, over_time

FIGURE = Figure("f", "Over time", "", (over_time(),))


@pytest.mark.parametrize(
    "value", [PERFORMANCE, FIGURE, Finding("x", "it holds", "confirmed", "by 3")]
)
def test_values_are_read_back_as_written(value: object) -> None:
    assert from_plain(type(value), json.loads(json.dumps(to_plain(value)))) == value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 3}, r"not a Table: Expected `array`, got `int` - at `\$.rows`"),
        ({"name": 5}, r"Expected `str`, got `int` - at `\$.name`"),
        (
            {"columns": [{"title": None}]},
            r"Expected `str`, got `null` - at `\$.columns\[0\].title`",
        ),
        ({"columns": [{}]}, r"missing required field `title` - at `\$.columns\[0\]`"),
        ({"rows": [{"cells": ["EBRank"]}]}, r"rows\[0\] has 1 cells for 7 columns"),
        (
            {"rows": [{"cells": [{"value": "x"}]}]},
            r"got `str` - at `\$.rows\[0\].cells\[0\].value`",
        ),
        ({"rows": [{"cells": [{"value": True}]}]}, r"Expected `float \| null`, got `bool`"),
    ],
)
def test_invalid_tables_are_rejected(change: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_plain(Table, to_plain(PERFORMANCE) | change)


@pytest.mark.parametrize(
    ("panel", "series", "message"),
    [
        ({}, {"y": [1.0]}, r"y has 1 values for 12 of x - at `\$.panels\[0\].series\[0\]`"),
        ({}, {"error": [1.0]}, r"error has 1 values for 12 of y"),
        ({}, {"x": 3}, r"Expected `array`, got `int` - at `\$.panels\[0\].series\[0\].x`"),
        ({"kind": "pie"}, {}, "pie"),
    ],
)
def test_invalid_figures_are_rejected(
    panel: dict[str, object], series: dict[str, object], message: str
) -> None:
    plain = json.loads(json.dumps(to_plain(FIGURE)))
    plain["panels"][0] |= panel
    plain["panels"][0]["series"][0] |= series
    with pytest.raises(DataError, match=message):
        from_plain(Figure, plain)


def test_a_later_field_is_ignored_and_whole_numbers_are_floats() -> None:
    assert from_plain(Table, to_plain(PERFORMANCE) | {"later": 1}) == PERFORMANCE
    assert isinstance(from_plain(Cell, {"value": 3}).value, float)
