from __future__ import annotations

import pytest

from ebrank.experiments.exhibits import ablation
from ebrank.experiments.framework.entrants import EBRANK, entrant_of
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset
from tests.experiments.made import result

FIGURES = {"full": 0.9, "w/o exploration": 0.8, "only prior": 0.6, "only behavior": 0.7}


def not_confirmed(changes: dict[str, float]) -> dict[str, str]:
    parts = {}
    for number, part in enumerate((ablation.FULL, *ablation.PARTS)):
        level = (FIGURES | changes)[part.label]
        parts[part] = result("ebrank", [(0.5, level, level)] * 2, noise=0.01, seed=10 * number)
    findings = list(ablation.findings(entrant_of(EBRANK), parts))
    assert len(findings) == len(ablation.PARTS) * 2
    return {each.name: each.verdict for each in findings if each.verdict != "confirmed"}


@pytest.mark.parametrize(
    ("changes", "part", "verdict"),
    [
        ({"w/o exploration": 0.8999}, "exploration", "undecided"),
        ({"only prior": 0.95}, "behavior", "contradicted"),
        ({"only behavior": 0.95}, "prior", "contradicted"),
    ],
)
def test_a_part_is_needed_if_all_is_surely_worse_without(
    changes: dict[str, float], part: str, verdict: str
) -> None:
    assert not_confirmed({}) == {}
    names = [f"ebrank-needs-{part}-{measure}" for measure in ("warm", "cum")]
    assert not_confirmed(changes) == dict.fromkeys(names, verdict)


def test_without_exploration_to_lose_it_is_compared_with_itself() -> None:
    full = result("ebrank", [(0.5, 0.9, 0.9)] * 2, noise=0.01)
    less = result("ebrank", [(0.5, 0.6, 0.6)] * 2, noise=0.01, seed=7)
    parts = {part: full if part.lacks == "exploration" else less for part in ablation.PARTS}
    parts = {ablation.FULL: full, **parts}
    by_name = {finding.name: finding for finding in ablation.findings(entrant_of(EBRANK), parts)}
    assert by_name["ebrank-needs-exploration-warm"].detail == ablation.ITSELF
    assert by_name["ebrank-needs-exploration-warm"].verdict == "undecided"
    assert by_name["ebrank-needs-prior-warm"].detail.startswith("adjusted p")
    assert ablation.table({entrant_of(EBRANK): parts}).caption.endswith("compared with itself.")


def test_each_run_lacks_the_part_it_names(finished: FinishedDataset) -> None:
    chosen = finished.setup.chosen[EBRANK, finished.setup.config]
    rankers = [run.ranker for run in ablation.runs(finished.setup).values()][:4]
    assert rankers[0] == chosen
    assert [one.value("epsilon") for one in rankers[:2]] == [chosen.value("epsilon"), 0.0]
    assert [one.value("part") for one in rankers] == ["both", "both", "prior", "behavior"]


def test_table_and_figures_of_a_real_run(finished: FinishedDataset) -> None:
    outcome = finished.outcomes["ablation"]
    assert [figure.name for figure in outcome.figures] == ["ablation", "ablation-exposure"]
    labels = ["full", "w/o exploration", "only prior", "only behavior"]
    (table,) = outcome.tables
    assert [row.cells[0] for row in table.rows] == labels * 2
    assert [row.group for row in table.rows[::4]] == ["EBRank", "EBRank (exposure)"]
    run = finished.setup.run(EBRANK, part="prior")
    cell = table.rows[2].cells[2]
    assert isinstance(cell, Cell)
    assert cell.value == finished.results[run].warm_ndcg.mean()
    assert table.rows[0].cells[5:] == ("", "")
    assert all(str(text).strip("<= ")[:1] in ".1" for text in table.rows[2].cells[5:])
