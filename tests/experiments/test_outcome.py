from __future__ import annotations

import json

import pytest

from ebrank.errors import DataError
from ebrank.experiments.outcome import (
    Cell,
    Column,
    Figure,
    Finding,
    Panel,
    Row,
    Series,
    Table,
    read,
    written,
)

TABLE = Table(
    "t",
    "Who wins",
    "by a nose",
    (Column("ranker"), Column("warm", group="MQ2007")),
    (
        Row(("EBRank", Cell(0.859, sd=0.004, best=True, marks="*†")), group="ours"),
        Row(("Oracle", Cell(None)), apart=True),
    ),
)
LINE = Series("EBRank", "ebrank", (1.0, 2.0), (0.5, 0.6), error=(0.1, 0.1))
FIGURE = Figure("f", "Over time", "", (Panel("warm", "sessions", "NDCG", (LINE,)),))


@pytest.mark.parametrize("value", [TABLE, FIGURE, Finding("x", "it holds", True, "by 3")])
def test_what_is_written_is_read_back(value: object) -> None:
    assert read(type(value), json.loads(json.dumps(written(value)))) == value


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rows": 3}, "not a Table"),
        ({"nonsense": 1}, "nonsense"),
        ({"name": 5}, "5 is no str"),
        ({"columns": [{"title": None}]}, "None is no str"),
    ],
)
def test_what_is_no_table_is_refused(change: dict[str, object], told: str) -> None:
    with pytest.raises(DataError, match=told):
        read(Table, written(TABLE) | change)


def test_an_unknown_kind_of_panel_is_refused() -> None:
    plain = written(FIGURE)
    plain["panels"][0]["kind"] = "pie"
    with pytest.raises(DataError, match="pie"):
        read(Figure, plain)


def test_whole_numbers_of_json_become_floats() -> None:
    assert isinstance(read(Cell, {"value": 3}).value, float)
