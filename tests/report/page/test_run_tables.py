"""How results were made: every run, and how long it took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.experiments.framework.outcome import Cell
from ebrank.report.page.chapters import runs_table, times_table
from tests.report.sample import NASTY, TIMES, dataset


def test_runs_are_means_with_deviations() -> None:
    (row,) = runs_table(dataset()).rows
    assert row.cells[0] == "ebrank:epsilon=5.0"
    cold = row.cells[5]
    assert isinstance(cold, Cell)
    assert cold.value == pytest.approx(0.55)
    assert cold.sd == pytest.approx(0.0707106781)


def test_runs_say_who_clicked() -> None:
    data = dataset()
    rare = replace(data.runs[0], users="dcm", click_rate=0.15)
    rows = runs_table(replace(data, runs=(*data.runs, rare))).rows
    assert [row.cells[1] for row in rows] == ["pbm", "dcm, click rate × 0.15"]


def test_times_are_in_words() -> None:
    table = times_table(TIMES)
    assert table is not None
    assert [row.cells[2] for row in table.rows] == ["1 min 15 s", "3.0 s", "1 h 2 min"]
    assert {row.group for row in table.rows} == {NASTY}
    assert table.caption.startswith("Trials on 2 cores at a time")
    alone = times_table(TIMES | {"jobs": 1})
    assert alone is not None
    assert alone.caption.startswith("Trials on 1 core at a time")


@pytest.mark.parametrize("times", [{}, {"datasets": [{}]}, {"datasets": 1}, {"datasets": [1]}])
def test_a_file_of_another_version_is_no_trouble(times: dict[str, object]) -> None:
    assert times_table(times) is None
