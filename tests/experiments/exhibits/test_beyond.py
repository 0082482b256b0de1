"""`auto` against EBRank and others: who runs where, and when its claims fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.data.dataset import Dataset
from ebrank.evidence import Examination
from ebrank.experiments import exhibits
from ebrank.experiments.exhibits import beyond
from ebrank.experiments.exhibits.beyond import BINARY, FLAT, RARE, STEEP, USUAL, entrants, worlds
from ebrank.experiments.framework import tuning
from ebrank.experiments.framework.entrants import (
    AUTO,
    BOTH,
    EXPOSURE_BOTH,
    EXPOSURE_UNTUNED,
    HYBRID,
    THOMPSON,
    TOPRANK,
    TUNING,
    UCBRANK,
    UNTUNED,
)
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import ReproductionPlan, run_plan
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.result import Result
from ebrank.simulation.users import PositionBased, parse
from tests.experiments.made import result

CONFIG = SimulationConfig()
LABELS = list(worlds(CONFIG))


def test_worlds_change_one_thing_each() -> None:
    by_label = worlds(CONFIG)
    assert by_label.pop(USUAL) == CONFIG
    assert by_label[FLAT] == replace(CONFIG, believed=Examination(severity=0.5, cutoff=5))
    assert by_label[STEEP] == replace(CONFIG, believed=Examination(severity=2.0, cutoff=5))
    assert by_label[RARE] == replace(CONFIG, click_rate=0.15)
    assert by_label["dcm users"] == replace(CONFIG, users=parse("dcm"))
    assert by_label["η = 0.1"] == replace(CONFIG, entering_probability=0.1)
    assert by_label[BINARY] == replace(CONFIG, labels="binary")
    assert len(by_label) == 2 + 1 + 1 + 3 + 4
    assert "η = 1" not in by_label, "that is the usual one"


def test_worlds_go_by_what_is_configured() -> None:
    """Users who look further down do so in every world, and what is wrong is wrong of them."""
    config = replace(CONFIG, users=parse("pbm:severity=0.5,cutoff=10"), click_rate=0.5)
    by_label = worlds(config)
    assert by_label[STEEP].believed == Examination(severity=1.0, cutoff=10)
    assert by_label["cascade users"].users == parse("cascade:cutoff=10")
    assert by_label[RARE].click_rate == pytest.approx(0.075)
    measured = replace(CONFIG, users=PositionBased(Examination(curve=(1.0, 0.3))))
    assert worlds(measured)[STEEP].believed == Examination(severity=2.0)


def test_untuned_is_as_it_comes() -> None:
    assert registry.parse(UNTUNED) == registry.parse(BOTH)
    assert registry.parse(EXPOSURE_UNTUNED) == registry.parse(EXPOSURE_BOTH)
    assert not {AUTO, UNTUNED, EXPOSURE_UNTUNED} & set(TUNING)


def test_toprank_and_thompson_take_part_where_candidates_are_few(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [one.key for one in entrants(dataset)][:2] == [AUTO, EXPOSURE_BOTH]
    assert TOPRANK in [one.key for one in entrants(dataset)]
    monkeypatch.setattr(beyond, "FEW_PAIRS", 100)
    assert TOPRANK not in [one.key for one in entrants(dataset)]
    assert THOMPSON in [one.key for one in entrants(dataset)]
    monkeypatch.setattr(beyond, "FEW_DRAWS", 5)
    assert THOMPSON not in [one.key for one in entrants(dataset)]


def made(changes: dict[tuple[str, str], float] | None = None) -> dict[str, dict[str, Result]]:
    """Return results in which auto leads everywhere, but for what is changed."""
    usual = {AUTO: 0.9, EXPOSURE_BOTH: 0.89, EXPOSURE_UNTUNED: 0.8, HYBRID: 0.88, UCBRANK: 0.6}
    return {
        label: {
            key: result(
                key, [(0.5, value, (changes or {}).get((label, key), value))] * 2, noise=0.01
            )
            for key, value in usual.items()
        }
        for label in LABELS
    }


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({}, []),
        # within the margins: .5 of Cum-NDCG (20 times what is served here), .003 of Run-NDCG
        ({(USUAL, HYBRID): 0.902}, []),
        ({(USUAL, HYBRID): 0.904}, ["run-users-as-configured"]),
        ({(RARE, HYBRID): 0.93}, ["cum-click-rates-×-0.15", "run-click-rates-×-0.15"]),
        ({(BINARY, EXPOSURE_BOTH): 0.93}, ["cum-binary-labels", "run-binary-labels"]),
        ({(FLAT, AUTO): 0.84}, ["cum-believed-curve-too-flat", "run-believed-curve-too-flat"]),
        ({("dbn users", EXPOSURE_UNTUNED): 0.99}, []),  # the claims are about tuned rankers
    ],
)
def test_every_world_has_a_claim_that_can_fail(
    changes: dict[tuple[str, str], float], fails: list[str]
) -> None:
    findings = list(beyond.findings(made(changes)))
    assert len(findings) == len({finding.name for finding in findings}) == 2 * len(LABELS)
    assert all(finding.ours for finding in findings)
    failed = [finding.name for finding in findings if finding.verdict != "confirmed"]
    assert failed == [f"auto-level-{name}" for name in fails]


def test_a_finding_says_by_how_much_against_whom() -> None:
    found = {finding.name: finding for finding in beyond.findings(made())}
    level = found["auto-level-cum-users-as-configured"]
    assert level.detail.startswith("against EBRank (exposure), β and ε tuned, adjusted p ")
    assert level.effect is not None
    assert level.effect.value == pytest.approx(0.3633, abs=1e-3)
    assert level.effect.border == -0.5


def test_with_folds_a_finding_says_how_it_varies_with_the_training_set() -> None:
    results = made()
    folds = {AUTO: [0.91, 0.92], EXPOSURE_BOTH: [0.9, 0.93]}
    for key, values in folds.items():
        by_fold = {"cum_ndcg": np.array(values) * 100, "run_ndcg": np.array(values)}
        results[USUAL][key] = replace(results[USUAL][key], by_fold=by_fold)
    found = {finding.name: finding.detail for finding in beyond.findings(results)}
    assert found["auto-level-run-users-as-configured"].endswith("; by fold +.010, −.010")
    assert "fold" not in found["auto-level-run-dcm-users"]


def test_level_may_be_luck() -> None:
    """What was counted as holding on means alone is undecided where the test cannot tell."""
    results = made()
    results[USUAL][AUTO] = result(AUTO, [(0.5, 0.9, 0.9)] * 2, noise=0.3, seed=3)
    found = {finding.name: finding.verdict for finding in beyond.findings(results)}
    assert found["auto-level-run-users-as-configured"] == "undecided"


NOTHING_CHOSEN: dict[str, dict[str, str]] = {
    label: dict.fromkeys((AUTO, EXPOSURE_BOTH, EXPOSURE_UNTUNED, HYBRID, UCBRANK), "")
    for label in LABELS
}


def test_the_table_marks_the_best_and_what_is_significant_of_auto() -> None:
    worlds = made({("dcm users", HYBRID): 0.95, ("dbn users", EXPOSURE_BOTH): 0.9})
    chosen = NOTHING_CHOSEN | {USUAL: NOTHING_CHOSEN[USUAL] | {HYBRID: "α = 0.2"}}
    table = beyond.table(CONFIG, worlds, chosen)
    cum = {(row.group, row.cells[0]): row.cells[3] for row in table.rows}
    assert all(isinstance(cell, Cell) for cell in cum.values())

    def of(world: str, ranker: str) -> Any:  # noqa: ANN401
        cell = cum[world, ranker]
        assert isinstance(cell, Cell)
        return cell.best, cell.marks

    assert of(USUAL, "auto") == (True, "*")
    assert of(USUAL, "EBRank (exposure), β and ε tuned") == (False, "")
    assert of("dcm users", "auto") == (False, "▾")
    assert of("dcm users", "Hybrid LinUCB") == (True, "")
    assert of("dbn users", "auto") == (True, "")
    assert len(table.rows) == len(LABELS) * 5
    assert {row.cells[-1] for row in table.rows if row.group == USUAL} == {"", "α = 0.2"}
    labels = table.rows[0].cells[5]
    assert isinstance(labels, Cell)
    assert labels.value == pytest.approx(0.4)


@pytest.mark.slow
def test_everyone_is_run_in_every_world(dataset: Dataset, tmp_path: Path) -> None:
    given = tuning.read_given(
        [
            *("ebrank:epsilon=30,beta=5", "ebrank:estimator=exposure,epsilon=10,beta=2"),
            *("ebrank:bonus=upper,estimator=exposure,beta=2,width=1", "thompson:beta=2"),
            *("hybridlinucb:alpha=0.1,ridge=1,item_ridge=3", "ucbrank:epsilon=0.01"),
            *("smoothedctr:strength=5", "toprank:delta=1"),
        ]
    )
    config = SimulationConfig(sessions=60, updates=2)
    plan = ReproductionPlan(exhibits.selected("beyond"), config, seed=5, trials=1, given=given)
    finished = run_plan(plan, dataset, tmp_path, jobs=1)
    assert len(finished.results) == 12 * 12
    tried = [record for record in finished.setup.tuning if record.grid]
    assert [record.key for record in tried] == ["pbmucb"] * 12
    assert [record.world for record in tried][3:6] == [
        *("click rate × 0.15", "binary labels", "cascade users"),
    ]
    outcome = finished.outcomes["beyond"]
    assert "Not tuned but given, in all worlds: ebrank" in outcome.tables[0].caption
    assert outcome.findings[0].detail.endswith("; some rivals were given")
    assert outcome.tables[0].rows[1].cells[-1] == "β = 2, ε = 10"
    by_condition, by_eta = outcome.figures
    assert by_condition.panels[0].series[0].x == tuple(LABELS[:8])
    auto = finished.results[finished.setup.run(AUTO)]
    rival = finished.results[finished.setup.run(EXPOSURE_BOTH)]
    assert by_condition.panels[0].series[0].y[0] == pytest.approx(
        float(np.mean(auto.cum_ndcg - rival.cum_ndcg))
    )
    assert by_eta.panels[1].series[0].style == "auto"
    assert by_eta.panels[1].series[0].y[-1] == auto.run_ndcg.mean()


def test_the_caption_names_the_ranks_measured() -> None:
    assert " NDCG@5 on test queries" in beyond.table(CONFIG, made(), NOTHING_CHOSEN).caption
    deeper = beyond.table(replace(CONFIG, cutoffs=(10,)), made(), NOTHING_CHOSEN)
    assert "Cold- and Warm-NDCG@10, Cum- and Run-NDCG@5 on test queries" in deeper.caption
