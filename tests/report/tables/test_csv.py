"""CSV: read back by Python's own reader, every number in full."""

from __future__ import annotations

import csv
import io

from ebrank.experiments.framework.outcome import Cell, Column, Row, Table
from ebrank.report.tables.csv import comma_separated
from tests.report.sample import NASTY, PERFORMANCE


def read(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(comma_separated(table))))


def test_numbers_are_whole_and_deviations_have_columns() -> None:
    rows = read(PERFORMANCE)
    assert rows[1]["MQ2007 Warm"] == "0.5"
    assert rows[1]["MQ2007 Warm sd"] == "0.1234"
    assert rows[2]["MSLR Cum marks"] == "*†"
    assert rows[3]["MSLR Cum"] == ""
    assert [row["group"] for row in rows] == ["W/o-Behav"] * 2 + ["W/-Behav"] * 2


def test_all_digits_survive() -> None:
    table = Table("t", "", "", (Column("x"),), (Row((Cell(1 / 3, digits=1),)),))
    assert float(read(table)[0]["x"]) == 1 / 3


def test_any_text_is_a_cell() -> None:
    text = f'{NASTY},"\n;'
    table = Table("t", "", "", (Column(NASTY),), (Row((text,)),))
    assert read(table) == [{NASTY: text}]
    assert "group" not in comma_separated(table).split("\n")[0].split(",")
