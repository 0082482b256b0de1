from __future__ import annotations

from dataclasses import replace

import numpy as np

from ebrank.experiments.framework import grids
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.experiment import GridPoint, TuningRecord

GRID = (GridPoint(0.0, (0.5, 0.6)), GridPoint(5.0, (0.7, 0.9)))
SLOW = TuningRecord("ebrank", "EBRank", 0.1, 5.0, "ebrank:epsilon=5", -2, False, GRID)
FAST = TuningRecord("ebrank", "EBRank", 1.0, 0.0, "ebrank:epsilon=0", -2, False, GRID[:1])
GIVEN = TuningRecord("ucbrank", "UCBRank", 1.0, 0.4, "ucbrank:epsilon=0.4")


def test_a_row_for_each_epsilon_and_a_column_for_each_eta() -> None:
    table = grids.table([FAST, SLOW, GIVEN])
    assert table is not None
    assert [column.title for column in table.columns] == ["ε", "η = 0.1", "η = 1"]
    assert [row.cells[0] for row in table.rows] == ["0", "5", "0.4 (given)"]
    cell = table.rows[1].cells[1]
    assert cell == Cell(0.8, float(np.std([0.7, 0.9], ddof=1)), 4, best=True)
    assert table.rows[1].cells[2] == Cell(None)
    assert table.rows[2].cells[1:] == (Cell(None), Cell(None))


def test_without_tuning_there_is_nothing_to_tell() -> None:
    assert grids.table([GIVEN]) is None
    assert grids.table([]) is None


def test_a_choice_at_the_end_of_its_grid_is_marked_and_explained() -> None:
    edge = replace(SLOW, at_the_edge=True)
    table = grids.table([FAST, edge])
    assert table is not None
    marks = [cell.marks for row in table.rows for cell in row.cells if isinstance(cell, Cell)]
    assert marks == ["", "", "‡", ""]
    assert table.caption.endswith("a wider grid may do better.")
    without = grids.table([FAST, SLOW])
    assert without is not None
    assert "‡" not in without.caption
