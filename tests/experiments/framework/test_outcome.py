from __future__ import annotations

import json

import pytest

from ebrank.errors import DataError
from ebrank.experiments.framework.outcome import Cell, Figure, Finding, Table, read, written
from tests.report.sample import PERFORMANCE, over_time

FIGURE = Figure("f", "Over time", "", (over_time(),))


@pytest.mark.parametrize("value", [PERFORMANCE, FIGURE, Finding("x", "it holds", True, "by 3")])
def test_what_is_written_is_read_back(value: object) -> None:
    assert read(type(value), json.loads(json.dumps(written(value)))) == value


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rows": 3}, "not a Table: rows: 3 is no list"),
        ({"nonsense": 1}, "nonsense is unknown"),
        ({"name": 5}, "name: 5 is no str"),
        ({"columns": [{"title": None}]}, r"columns\[0\].title: None is no str"),
        ({"columns": [{}]}, r"columns\[0\].title is missing"),
        ({"rows": [{"cells": ["EBRank"]}]}, r"rows\[0\]: 1 cells for 7 columns"),
        ({"rows": [{"cells": [{"value": "x"}]}]}, r"rows\[0\].cells\[0\].value: 'x' is no float"),
        ({"rows": [{"cells": [{"value": True}]}]}, r"value: True is no float"),
    ],
)
def test_what_is_no_table_is_refused(change: dict[str, object], told: str) -> None:
    with pytest.raises(DataError, match=told):
        read(Table, written(PERFORMANCE) | change)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"y": [1.0]}, r"panels\[0\].series\[0\].y: 1 values for 12 of x"),
        ({"error": [1.0]}, r"series\[0\].error: 1 values for 12 of y"),
        ({"x": 3}, r"series\[0\].x: 3 is no list"),
    ],
)
def test_lines_that_do_not_fit_are_refused(change: dict[str, object], told: str) -> None:
    plain = written(FIGURE)
    plain["panels"][0]["series"][0] |= change
    with pytest.raises(DataError, match=told):
        read(Figure, plain)


def test_an_unknown_kind_of_panel_is_refused() -> None:
    plain = written(FIGURE)
    plain["panels"][0]["kind"] = "pie"
    with pytest.raises(DataError, match="pie"):
        read(Figure, plain)


def test_whole_numbers_of_json_become_floats() -> None:
    assert isinstance(read(Cell, {"value": 3}).value, float)
