"""`auto` against EBRank and others: who runs where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ebrank.evidence import Examination
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.users import PositionBased, parse
from ebrank.paper import exhibits
from ebrank.paper.exhibits import beyond
from ebrank.paper.exhibits.beyond import BINARY, FLAT, RARE, STEEP, USUAL, entrants, worlds
from ebrank.paper.framework import entrants as keys
from ebrank.paper.framework import tuning
from ebrank.paper.framework.runner import ReproductionPlan
from tests.paper.made import run_plan

CONFIG = SimulationConfig()
LABELS = list(worlds(CONFIG))


def test_worlds_change_one_thing_each() -> None:
    by_label = worlds(CONFIG)
    assert by_label.pop(USUAL) == CONFIG
    assert by_label[FLAT] == replace(CONFIG, assumed=Examination(severity=0.5, cutoff=5))
    assert by_label[STEEP] == replace(CONFIG, assumed=Examination(severity=2.0, cutoff=5))
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
    assert by_label[STEEP].assumed == Examination(severity=1.0, cutoff=10)
    assert by_label["cascade users"].users == parse("cascade:cutoff=10")
    assert by_label[RARE].click_rate == pytest.approx(0.075)
    measured = replace(CONFIG, users=PositionBased(Examination(curve=(1.0, 0.3))))
    assert worlds(measured)[STEEP].assumed == Examination(severity=2.0)


def test_untuned_is_as_it_comes() -> None:
    assert registry.parse(keys.UNTUNED) == registry.parse(keys.BOTH)
    assert registry.parse(keys.EXPOSURE_UNTUNED) == registry.parse(keys.EXPOSURE_BOTH)
    assert not {keys.AUTO, keys.UNTUNED, keys.EXPOSURE_UNTUNED} & set(keys.TUNING)


def test_toprank_and_thompson_take_part_where_candidates_are_few(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    everyone = [entrant.key for entrant in entrants(dataset)]
    assert everyone[:2] == [keys.AUTO, keys.EXPOSURE_BOTH]
    for limit, value, key in (("FEW_PAIRS", 100, keys.TOPRANK), ("FEW_DRAWS", 5, keys.THOMPSON)):
        monkeypatch.setattr(beyond, limit, value)
        everyone.remove(key)
        assert [entrant.key for entrant in entrants(dataset)] == everyone


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
    assert [record.label for record in tried] == ["PBM-UCB"] * 12
    assert [record.world for record in tried][3:6] == [
        *("click rate × 0.15", "binary labels", "cascade users"),
    ]
    display = finished.displays["beyond"]
    assert "Not tuned but given, in all worlds: ebrank" in display.tables[0].caption
    assert display.findings[0].detail.endswith("; some rivals were given")
    assert display.tables[0].rows[1].cells[-1] == "β = 2, ε = 10"
    by_condition, by_eta = display.figures
    assert by_condition.panels[0].series[0].x == tuple(LABELS[:8])
    auto = finished.results[finished.setup.run(keys.AUTO)]
    rival = finished.results[finished.setup.run(keys.EXPOSURE_BOTH)]
    assert by_condition.panels[0].series[0].y[0] == pytest.approx(
        float(np.mean(auto.cum_ndcg - rival.cum_ndcg))
    )
    assert by_eta.panels[1].series[0].style == "auto"
    assert by_eta.panels[1].series[0].y[-1] == auto.run_ndcg.mean()
    assert " NDCG@5 on test queries" in display.tables[0].caption
