from __future__ import annotations

from dataclasses import replace

from ebrank.experiments.exhibits.extras import epsilon
from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, UCBRANK
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset
from ebrank.experiments.framework.tuning import grid_of
from ebrank.rankers import registry


def test_a_point_for_each_epsilon_and_the_chosen_one_named(finished: FinishedDataset) -> None:
    setup = finished.setup
    ucb, ours = finished.outcomes["epsilon"].figures
    assert [figure.name for figure in (ucb, ours)] == ["epsilon-ucbrank", "epsilon-ebrank"]
    chosen = setup.chosen[UCBRANK, setup.config].value("epsilon")
    (line,) = ucb.panels[2].series
    assert line.label == f"UCBRank, chosen {chosen:g}"
    assert line.x == grid_of(UCBRANK)
    for value, height in zip(line.x, line.y, strict=True):
        run = setup.run(UCBRANK, epsilon=value)
        assert height == finished.results[run].cum_ndcg.mean()
    assert [line.style for line in ours.panels[0].series] == ["ebrank", "ebrank-exposure"]


def test_the_table_marks_the_chosen_one(finished: FinishedDataset) -> None:
    (table,) = finished.outcomes["epsilon"].tables
    bold = [
        (row.group, row.cells[0])
        for row in table.rows
        if isinstance(row.cells[1], Cell) and row.cells[1].best
    ]
    expected = [
        (record.label, f"{record.value:g}")
        for record in finished.setup.tuning
        if record.entering_probability == 1.0
    ]
    assert bold == expected


def test_an_epsilon_that_was_given_is_looked_at_too(finished: FinishedDataset) -> None:
    given = dict(finished.setup.chosen)
    given[EBRANK, finished.setup.config] = registry.parse("ebrank:epsilon=33")
    setup = replace(finished.setup, chosen=given)
    assert epsilon.values(setup, EBRANK) == tuple(sorted({*grid_of(EBRANK), 33.0}))
    assert len(epsilon.runs(setup)) == 1 + sum(
        len(grid_of(key)) for key in (UCBRANK, EBRANK, EXPOSURE)
    )
