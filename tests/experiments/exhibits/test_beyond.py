"""`auto` against EBRank and others: who runs where, and when its claims fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.data.dataset import Dataset
from ebrank.evidence import Examination
from ebrank.experiments import catalog
from ebrank.experiments.exhibits import beyond
from ebrank.experiments.exhibits.beyond import FLAT, RARE, STEEP, USUAL, entrants, worlds
from ebrank.experiments.framework import tuning
from ebrank.experiments.framework.entrants import (
    AUTO,
    EBRANK,
    EXPOSURE,
    EXPOSURE_UNTUNED,
    TOPRANK,
    TUNING,
    UCBRANK,
    UNTUNED,
)
from ebrank.experiments.framework.measures import CUM
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import ReproductionPlan, run_plan
from ebrank.experiments.framework.significance import contrast, shares
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.result import Result
from ebrank.simulation.users import PositionBased, parse
from tests.experiments.made import QUERIES, result

CONFIG = SimulationConfig()
LABELS = [world.label for world in worlds(CONFIG)]


def test_worlds_change_one_thing_each() -> None:
    by_label = {world.label: world.config for world in worlds(CONFIG)}
    assert by_label.pop(USUAL) == CONFIG
    assert by_label[FLAT] == replace(CONFIG, believed=Examination(severity=0.5, cutoff=5))
    assert by_label[STEEP] == replace(CONFIG, believed=Examination(severity=2.0, cutoff=5))
    assert by_label[RARE] == replace(CONFIG, click_rate=0.15)
    assert by_label["dcm users"] == replace(CONFIG, users=parse("dcm"))
    assert by_label["η = 0.1"] == replace(CONFIG, entering_probability=0.1)
    assert len(by_label) == 2 + 1 + 3 + 4
    assert "η = 1" not in by_label, "that is the usual one"


def test_worlds_go_by_what_is_configured() -> None:
    """Users who look further down do so in every world, and what is wrong is wrong of them."""
    config = replace(CONFIG, users=parse("pbm:severity=0.5,cutoff=10"), click_rate=0.5)
    by_label = {world.label: world.config for world in worlds(config)}
    assert by_label[STEEP].believed == Examination(severity=1.0, cutoff=10)
    assert by_label["cascade users"].users == parse("cascade:cutoff=10")
    assert by_label[RARE].click_rate == pytest.approx(0.075)
    measured = replace(CONFIG, users=PositionBased(Examination(curve=(1.0, 0.3))))
    believed = {world.label: world.config for world in worlds(measured)}[STEEP].believed
    assert believed == Examination(severity=2.0)


def test_untuned_is_as_it_comes() -> None:
    assert registry.parse(UNTUNED) == registry.parse(EBRANK)
    assert registry.parse(EXPOSURE_UNTUNED) == registry.parse(EXPOSURE)
    assert not {AUTO, UNTUNED, EXPOSURE_UNTUNED} & set(TUNING)


def test_toprank_takes_part_where_pairs_are_few(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [one.key for one in entrants(dataset)][:2] == [AUTO, EXPOSURE]
    assert TOPRANK in [one.key for one in entrants(dataset)]
    monkeypatch.setattr(beyond, "FEW_PAIRS", 100)
    assert TOPRANK not in [one.key for one in entrants(dataset)]


def made(changes: dict[tuple[str, str], float] | None = None) -> dict[str, dict[str, Result]]:
    """Return results in which auto leads everywhere, but for what is changed."""
    usual = {AUTO: 0.9, EXPOSURE: 0.89, EBRANK: 0.88, EXPOSURE_UNTUNED: 0.8, UNTUNED: 0.7}
    wrong = usual | {EXPOSURE: 0.8, EBRANK: 0.8}
    by_world = {}
    for label in LABELS:
        served = wrong if label in (FLAT, STEEP) else usual
        by_world[label] = {
            key: result(
                key, [(0.5, value, (changes or {}).get((label, key), value))] * 2, noise=0.01
            )
            for key, value in (served | {UCBRANK: 0.6}).items()
        }
    return by_world


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({}, []),
        # within the margins: .5 of Cum-NDCG (20 times what is served here), .003 of Run-NDCG
        ({(USUAL, EXPOSURE): 0.902}, []),
        ({(USUAL, EXPOSURE): 0.904}, ["not-below-run-users-as-configured"]),
        (
            {(USUAL, EXPOSURE): 0.93},
            ["not-below-cum-users-as-configured", "not-below-run-users-as-configured"],
        ),
        ({(RARE, EXPOSURE_UNTUNED): 0.91}, ["ahead-cum-rare-clicks", "ahead-run-rare-clicks"]),
        ({(RARE, EXPOSURE): 0.99}, []),
        ({(FLAT, AUTO): 0.84}, ["loses-less-cum-believed-curve-too-flat"]),
        ({(FLAT, AUTO): 0.87}, []),
        (
            {(STEEP, AUTO): 0.78},
            [
                "loses-less-cum-believed-curve-too-steep",
                "not-below-cum-believed-curve-too-steep",
            ],
        ),
        ({(STEEP, EXPOSURE): 0.89}, []),  # a loss of nothing is no more than .5
        ({(STEEP, EBRANK): 0.91}, ["not-below-cum-believed-curve-too-steep"]),
        (
            {("dcm users", EBRANK): 0.905},
            ["not-below-cum-dcm-users", "not-below-run-dcm-users"],
        ),
        ({("dbn users", EBRANK): 0.99}, []),
    ],
)
def test_what_auto_must_show_can_fail(
    changes: dict[tuple[str, str], float], fails: list[str]
) -> None:
    findings = list(beyond.findings(made(changes)))
    assert len(findings) == len({finding.name for finding in findings}) == 2 + 2 + 4 + 4
    assert all(finding.ours for finding in findings)
    failed = [finding.name for finding in findings if finding.verdict != "confirmed"]
    assert failed == [f"auto-{name}" for name in fails]


def test_a_finding_says_by_how_much_against_whom() -> None:
    found = {finding.name: finding for finding in beyond.findings(made())}
    level = found["auto-not-below-cum-users-as-configured"]
    assert level.detail == "against EBRank (exposure); p < .0001"
    assert level.effect is not None
    assert level.effect.value == pytest.approx(0.3633, abs=1e-3)
    assert level.effect.border == -0.5
    loss = found["auto-loses-less-cum-believed-curve-too-steep"]
    assert loss.detail == "auto loses .0, EBRank (exposure) 3.3; adjusted p < .0001"


def test_two_ways_to_lose_less_are_two_chances() -> None:
    """A p-value below .05 by one of the two ways is above it if both are counted."""
    results = made({(FLAT, EXPOSURE): 0.89})  # it loses nothing, so the margin alone can decide
    results[FLAT][AUTO] = result(AUTO, [(0.5, 0.9, 0.9)] * 2, noise=0.09, seed=3)
    margin = beyond.LEVEL_WITH[CUM] / QUERIES
    spared = margin - shares(results[USUAL][AUTO], results[FLAT][AUTO], CUM)
    assert 0.025 < contrast(spared).p_value < 0.05
    found = {finding.name: finding for finding in beyond.findings(results)}
    loss = found["auto-loses-less-cum-believed-curve-too-flat"]
    assert loss.verdict == "undecided"
    assert loss.effect is not None
    assert loss.effect.low is not None
    assert loss.effect.low < 0 < loss.effect.value


def test_level_may_be_luck() -> None:
    """What was counted as holding on means alone is undecided where the test cannot tell."""
    results = made()
    noisy = result(AUTO, [(0.5, 0.9, 0.9)] * 2, noise=0.3, seed=3)
    results[USUAL][AUTO] = results["dcm users"][AUTO] = noisy
    found = {finding.name: finding.verdict for finding in beyond.findings(results)}
    assert found["auto-not-below-run-users-as-configured"] == "undecided"
    assert found["auto-not-below-cum-dcm-users"] == "undecided"


def test_the_table_marks_the_best_and_what_is_significant_of_auto() -> None:
    worlds = made({("dcm users", UNTUNED): 0.95, ("dbn users", EBRANK): 0.9})
    table = beyond.table(CONFIG, worlds)
    cum = {(row.group, row.cells[0]): row.cells[3] for row in table.rows}
    assert all(isinstance(cell, Cell) for cell in cum.values())

    def of(world: str, ranker: str) -> Any:  # noqa: ANN401
        cell = cum[world, ranker]
        assert isinstance(cell, Cell)
        return cell.best, cell.marks

    assert of(USUAL, "auto") == (True, "*")
    assert of(USUAL, "EBRank (exposure)") == (False, "")
    assert of("dcm users", "auto") == (False, "▾")
    assert of("dcm users", "EBRank, untuned") == (True, "")
    assert of("dbn users", "auto") == (True, "")
    assert len(table.rows) == len(LABELS) * 6


@pytest.mark.slow
def test_everyone_is_run_in_every_world(dataset: Dataset, tmp_path: Path) -> None:
    given = tuning.read_given(
        [
            *("ebrank:epsilon=30", "ebrank:estimator=exposure,epsilon=10", "ucbrank:epsilon=0.01"),
            *("smoothedctr:strength=5", "linucb:alpha=0.1", "toprank:delta=1"),
        ]
    )
    config = SimulationConfig(sessions=60, updates=2)
    plan = ReproductionPlan(catalog.selected("beyond"), config, seed=5, trials=1, given=given)
    finished = run_plan(plan, dataset, tmp_path, jobs=1)
    assert len(finished.results) == 11 * 10
    tried = [record for record in finished.setup.tuning if record.grid]
    assert [record.key for record in tried] == ["pbmucb"] * 11
    assert [record.world for record in tried][3:5] == ["click rate × 0.15", "cascade users"]
    outcome = finished.outcomes["beyond"]
    assert "Not tuned but given, in all worlds: ebrank" in outcome.tables[0].caption
    assert outcome.findings[0].detail.endswith("EBRank's ε was given, not tuned")
    by_condition, by_eta = outcome.figures
    assert by_condition.panels[0].series[0].x == tuple(LABELS[:7])
    auto = finished.results[finished.setup.run(AUTO)]
    rival = finished.results[finished.setup.run(EXPOSURE)]
    assert by_condition.panels[0].series[0].y[0] == pytest.approx(
        float(np.mean(auto.cum_ndcg - rival.cum_ndcg))
    )
    assert by_eta.panels[1].series[0].style == "auto"
    assert by_eta.panels[1].series[0].y[-1] == auto.run_ndcg.mean()


def test_the_caption_names_the_ranks_measured() -> None:
    assert " NDCG@5 on test queries" in beyond.table(CONFIG, made()).caption
    deeper = beyond.table(replace(CONFIG, cutoffs=(10,)), made())
    assert "Cold- and Warm-NDCG@10, Cum- and Run-NDCG@5 on test queries" in deeper.caption
