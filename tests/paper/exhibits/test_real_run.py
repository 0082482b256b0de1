"""The exhibits of a real, small run: every number is the mean of the run it stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from ebrank.lab.simulation.result import Result
from ebrank.paper.exhibits import ablation, waiting
from ebrank.paper.framework.display import Cell, Display, Table
from ebrank.paper.framework.entrants import EBRANK, ENTRANTS, FIGURES, PAPER, UCBRANK
from ebrank.paper.framework.exhibit import Setup
from ebrank.paper.framework.measures import MEASURES
from ebrank.paper.framework.runner import FinishedDataset
from ebrank.paper.references import variants
from tests.paper.made import numbers, result, with_trials

TITLES = ["Cold-NDCG", "Warm-NDCG", "Cum-NDCG", "Run-NDCG"]


def table_of(finished: FinishedDataset, name: str) -> Table:
    (table,) = finished.displays[name].tables
    return table


def means(results: Iterable[Result]) -> list[list[float]]:
    return [[measure.mean(each) for measure in MEASURES] for each in results]


def test_table_1_describes_the_dataset(finished: FinishedDataset) -> None:
    data, table = finished.setup.dataset, table_of(finished, "table1")
    (row,) = table.rows
    splits = [int((data.query_splits == split).sum()) for split in range(3)]
    assert dict(zip([column.title for column in table.columns], row.cells, strict=True)) == {
        "dataset": "mq2007-like×0.02",
        "queries": Cell(float(len(data.query_ids)), digits=0),
        "train / vali / test": " / ".join(map(str, splits)),
        "candidates a query": Cell(len(data.labels) / len(data.query_ids), digits=1),
        "rows": Cell(float(len(data.labels)), digits=0),
        "features": Cell(float(data.features.shape[1]), digits=0),
        "labels": "0–2",
        "sessions of a trial": Cell(400.0, digits=0),
    }


def test_table_2_has_everyone_and_the_best_of_each_group_in_bold(finished: FinishedDataset) -> None:
    setup, table = finished.setup, table_of(finished, "table2")
    by_labels = ["Cold (labels)", "Warm (labels)", "Run (labels)"]
    assert [column.title for column in table.columns[1:]] == TITLES + by_labels
    assert [row.cells[0] for row in table.rows] == [entrant.label for entrant in ENTRANTS]
    assert [row.apart for row in table.rows] == [False] * 16 + [True] * 5
    results = [finished.results[setup.run(entrant.key)] for entrant in ENTRANTS]
    assert [numbers(row.cells[1:5]) for row in table.rows] == means(results)
    for row, each in zip(table.rows, results, strict=True):
        spread = [measure.values(each).std(ddof=1) for measure in MEASURES]
        assert [cell.sd for cell in row.cells[1:5] if isinstance(cell, Cell)] == spread
        labels = (each.cold_ndcg_labels, each.warm_ndcg_labels, each.run_ndcg_labels)
        assert row.cells[5:] == tuple(Cell(float(values.mean())) for values in labels)
    rows = dict(zip(ENTRANTS, table.rows, strict=True))
    for column in (1, 2, 3):
        for group in ("without", "with"):
            own = [rows[each].cells[column] for each in PAPER if each.group == group]
            best = [cell for cell in own if isinstance(cell, Cell) and cell.best]
            assert numbers(best) == [max(value or 0.0 for value in numbers(own))]


def test_table_2_runs_the_variants_of_the_ledger(finished: FinishedDataset) -> None:
    wanted = [variant.run(finished.setup) for variant in variants(finished.setup.dataset.origin)]
    assert len(wanted) > 5
    assert all(run in finished.results for run in wanted)


def test_table_3_has_the_weights_of_the_last_models(finished: FinishedDataset) -> None:
    table = table_of(finished, "table3")
    labels = ["CFEpsilon", "CFRandomK", "CFTopK", "DBGD", "MGD", "PDGD", "PRIOR"]
    assert [row.cells[0] for row in table.rows] == labels
    shares = []
    for trial in finished.results[finished.setup.run("pdgd:features=concate")].trials:
        assert trial.weights is not None
        sizes = [abs(weight) for weight in trial.weights.tolist()]
        assert len(sizes) == finished.setup.dataset.n_features + 1
        shares.append((sizes[-1] / sum(sizes), max(sizes[:-1]) / sum(sizes)))
    cells = [cell for cell in table.rows[5].cells if isinstance(cell, Cell)]
    assert [cell.value for cell in cells] == pytest.approx(np.mean(shares, axis=0))
    assert [cell.sd for cell in cells] == pytest.approx(np.std(shares, axis=0, ddof=1))


def test_over_time_every_ranker_has_a_line_through_its_means(finished: FinishedDataset) -> None:
    (figure,) = finished.displays["time"].figures
    assert [panel.title for panel in figure.panels] == TITLES
    for panel in figure.panels:
        assert [line.style for line in panel.series] == [each.style for each in FIGURES]
        assert all(line.x == (100.0, 200.0, 300.0, 400.0) for line in panel.series)
    trials = finished.results[finished.setup.run("ebrank")].trials
    (line,) = [line for line in figure.panels[1].series if line.style == "ebrank"]
    warm = np.array([trial.warm_ndcg[:, 0] for trial in trials])
    assert line.y == tuple(warm.mean(axis=0))
    assert line.error == tuple(warm.std(axis=0, ddof=1))


def test_ablation_each_run_lacks_the_part_it_names(finished: FinishedDataset) -> None:
    chosen = finished.setup.chosen[EBRANK, finished.setup.config]
    rankers = [run.ranker for run in ablation.runs(finished.setup).values()][:4]
    assert rankers[0] == chosen
    assert [ranker.value("epsilon") for ranker in rankers[:2]] == [chosen.value("epsilon"), 0.0]
    assert [ranker.value("part") for ranker in rankers] == ["both", "both", "prior", "behavior"]
    figures, table = finished.displays["ablation"].figures, table_of(finished, "ablation")
    assert [figure.name for figure in figures] == ["ablation", "ablation-exposure"]
    labels = ["full", "w/o exploration", "only prior", "only behavior"]
    assert [row.cells[0] for row in table.rows] == labels * 2
    assert [row.group for row in table.rows[::4]] == ["EBRank (paper)", "EBRank (exposure)"]
    results = [finished.results[run] for run in ablation.runs(finished.setup).values()]
    assert [numbers(row.cells[1:5]) for row in table.rows] == means(results)
    assert table.rows[0].cells[5:] == ("", "")
    assert all(str(text).strip("<= ")[:1] in ".1" for text in table.rows[2].cells[5:])


def test_entering_has_a_point_for_each_eta_with_the_epsilon_tuned_for_it(
    finished: FinishedDataset,
) -> None:
    (figure,) = finished.displays["entering"].figures
    setup = finished.setup
    assert all(line.x == (0.1, 0.2, 0.4, 0.7, 1.0) for p in figure.panels for line in p.series)
    (line,) = [line for line in figure.panels[2].series if line.style == "ucbrank"]
    configs = [replace(setup.config, entering_probability=float(eta)) for eta in line.x]
    results = [finished.results[setup.run(UCBRANK, config)] for config in configs]
    assert list(line.y) == [each.cum_ndcg.mean() for each in results]


# --- waiting -------------------------------------------------------------------------------------

SHOWN, TOP, WATCHED = [0, 2, -1, 3], [5, -1, -1, -1], [9, 9, 1, 9]


def waited(
    setup: Setup, *trials: tuple[list[int], list[int], list[int]]
) -> tuple[Display, dict[str, list[float | None]]]:
    """Return the display if every ranker had trials with these waits, and its rows."""
    made = result("bm25", [(0.5, 0.5, 0.5)] * len(trials))
    waits = [[np.array(own, np.int64) for own in trial] for trial in trials]
    shown, top, watched = zip(*waits, strict=True)
    made = with_trials(made, wait_shown=shown, wait_top=top, watched=watched)
    display = waiting.display(setup, dict.fromkeys(waiting.runs(setup), made))
    return display, {str(row.cells[0]): numbers(row.cells[1:]) for row in display.tables[0].rows}


def test_shares_count_those_still_waiting_for_as_long_as_they_were_watched(
    finished: FinishedDataset,
) -> None:
    display, rows = waited(finished.setup, (SHOWN, TOP, WATCHED))
    shown, top = display.figures[0].panels
    line = shown.series[0]
    # at 0 one of four; the one watched until 1 leaves; at 2 one of two left, at 3 the last
    assert line.x == (0.0, 2.0, 3.0, 9.0)
    assert line.y == pytest.approx((1 / 4, 1 - 3 / 4 / 2, 1.0, 1.0))
    assert line.error[0] == pytest.approx(np.sqrt(1 / 4 * 3 / 4 / 4))
    assert top.series[0].x == (0.0, 5.0, 9.0)
    assert top.series[0].y == pytest.approx((0.0, 1 / 3, 1 / 3))
    # nobody was watched for ten sessions
    assert rows["EBRank (paper)"] == pytest.approx([4.0, 2.0, None, 1.0, None, None, 1 / 3])
    _, rows = waited(finished.setup, (SHOWN, TOP, WATCHED), ([1], [-1], [4]))
    assert rows["EBRank (paper)"][0] == 5, "trials are taken together"
    for last, share in ((9, None), (10, 0.5), (11, 0.5)):
        _, rows = waited(finished.setup, ([3, -1], [-1, -1], [last, last]))
        assert rows["EBRank (paper)"][2] == share, "given while an item is watched"
    display, rows = waited(finished.setup, ([], [], []))
    assert display.figures[0].panels[0].series[0].y == ()
    assert rows["BM25"] == [0, *[None] * 6], "nothing entered, nothing waited"


def test_all_rankers_wait_for_the_same_arrivals(finished: FinishedDataset) -> None:
    (figure,), table = finished.displays["waiting"].figures, table_of(finished, "waiting")
    assert [row.cells[0] for row in table.rows] == [entrant.label for entrant in ENTRANTS]
    assert len({row.cells[1] for row in table.rows}) == 1
    apart = [row.cells[0] for row in table.rows if row.group == "for comparison"]
    assert apart == ["Thompson", "Random", "Oracle"]
    for panel in figure.panels:
        assert [line.style for line in panel.series] == [entrant.style for entrant in FIGURES]
        assert all(list(line.y) == sorted(line.y) for line in panel.series)
