"""Opinions as features: how they are made, who sees them, and how claims are decided."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import ebrank
from ebrank.kernels import streams
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import simulate
from ebrank.lab.simulation.result import Result
from ebrank.paper import exhibits
from ebrank.paper.exhibits import opinions
from ebrank.paper.exhibits.beyond import RARE, USUAL
from ebrank.paper.framework.display import Finding
from ebrank.paper.framework.runner import ReproductionPlan
from tests.paper.made import run_plan, sure

KEY = streams.trial_key(7, 0)
WORLDS = (USUAL, RARE, opinions.SHORT_LOG)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return ebrank.load("mq2007-like", scale=0.05)


def drawn(data: Dataset, key: str) -> np.ndarray:
    return opinions.OPINIONS[key].draw(data, np.random.default_rng(5))


def agreement(data: Dataset, column: np.ndarray, rows: np.ndarray | slice = slice(None)) -> float:
    return float(np.corrcoef(column[rows], data.labels[rows])[0, 1])


def test_the_more_is_corrupted_the_less_an_opinion_agrees_with_labels(data: Dataset) -> None:
    right, *others, noise = (
        agreement(data, drawn(data, key)[:, 0]) for key in opinions.CORRUPTED.values()
    )
    assert right > 0.9
    assert [right, *others] == sorted([right, *others], reverse=True)
    assert abs(noise) < 0.05
    unlike = np.rint(drawn(data, "corrupted40")[:, 0]) != data.labels
    assert unlike.mean() == pytest.approx(0.4 * 2 / 3 + 0.6 * 0.05, abs=0.04), "a third by chance"


def test_an_opinion_against_a_segment_is_reversed_there_alone(data: Dataset) -> None:
    for key, segment in (("kind", opinions.one_kind), ("shown", opinions.shown_most)):
        inside = segment(data, np.random.default_rng(5))
        told, member = drawn(data, key).T
        assert np.array_equal(member == 1.0, inside)
        assert 0.25 < inside.mean() < 0.35
        assert agreement(data, told, inside) < -0.9
        assert agreement(data, told, ~inside) > 0.9
    within, outside, member = drawn(data, "split").T
    assert set(within[member == 0]) == set(outside[member == 1]) == {data.max_label / 2}
    assert agreement(data, outside, member == 0) > 0.9


def test_an_embedding_tells_something_unless_it_is_useless(data: Dataset) -> None:
    def explained(vectors: np.ndarray) -> float:
        half = data.n_rows // 2
        centered = vectors - vectors.mean(axis=0)
        weights = np.linalg.lstsq(centered[:half], data.labels[:half], rcond=None)[0]
        return agreement(data, centered @ weights, np.arange(half, data.n_rows))

    assert drawn(data, "embedding").shape == (data.n_rows, opinions.COLUMNS)
    assert drawn(data, "components").shape == (data.n_rows, opinions.FACTORS)
    assert explained(drawn(data, "embedding")) > 0.5
    assert explained(drawn(data, "components")) > 0.6
    assert abs(explained(drawn(data, "useless"))) < 0.1
    assert abs(explained(drawn(data, "useless_components"))) < 0.1


def test_principal_components_are_those_of_most_variance() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(500, 6)) * [0.1, 5.0, 0.1, 2.0, 0.1, 0.1]
    first, second = opinions.principal_components(vectors, 2).T
    assert abs(np.corrcoef(first, vectors[:, 1])[0, 1]) > 0.99
    assert abs(np.corrcoef(second, vectors[:, 3])[0, 1]) > 0.99


def test_opinions_are_drawn_by_trial_and_scaled_like_all_features(data: Dataset) -> None:
    again, other = (
        opinions.columns(data, "right", KEY),
        opinions.columns(data, "right", streams.trial_key(7, 1)),
    )
    assert np.array_equal(opinions.columns(data, "right", KEY), again)
    assert not np.array_equal(again, other)
    assert again.min() == 0.0
    assert again.max() == 1.0


def test_only_features_differ_from_auto(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """An opinion that is the same for all items changes nothing: users and draws are auto's."""
    nothing = opinions.Opinion("nothing", lambda data, rng: np.zeros((data.n_rows, 1)))
    monkeypatch.setitem(opinions.OPINIONS, "right", nothing)
    config = SimulationConfig(sessions=400, updates=2)
    auto, with_it = (
        simulate(data, ranker, config, seed=3)
        for ranker in (registry.parse("auto"), opinions.Opinionated("right"))
    )
    assert with_it.run_ndcg == pytest.approx(auto.run_ndcg, abs=1e-6)
    assert with_it.cold_ndcg == pytest.approx(auto.cold_ndcg, abs=1e-6)


def test_it_can_be_named_on_the_command_line() -> None:
    for key in opinions.OPINIONS:
        assert registry.parse(str(opinions.Opinionated(key))) == opinions.Opinionated(key)


def test_worlds_have_fewer_and_fewer_clicks(data: Dataset) -> None:
    by_label = opinions.worlds(SimulationConfig(), data)
    assert tuple(by_label) == WORLDS
    assert [config.click_rate for config in by_label.values()] == [1.0, 0.15, 0.15]
    whole, _, short = (config.session_count(data) for config in by_label.values())
    assert short == whole // 10


# --- claims --------------------------------------------------------------------------------------


def made(changes: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], Result]:
    """Return results that are level with auto without an opinion, but for some."""
    places = [(world, key) for world in WORLDS for key in opinions.LABELS]
    return {
        place: sure("auto", level, level, level, seed=number)
        for number, place in enumerate(places)
        for level in [0.6 + changes.get(place, 0.0)]
    }


def verdict(changes: Mapping[tuple[str, str], float], name: str) -> Finding:
    return next(each for each in opinions.findings(made(changes)) if each.name == name)


def test_an_opinion_that_is_right_must_help_in_every_world() -> None:
    helps = {(world, "right"): 0.1 for world in WORLDS}
    assert verdict(helps, "opinion-ahead-run-right").verdict == "confirmed"
    level = verdict(helps | {(RARE, "right"): 0.0}, "opinion-ahead-run-right")
    assert level.verdict == "undecided"
    assert level.detail.startswith(RARE)
    harms = helps | {(RARE, "right"): -0.1}
    assert verdict(harms, "opinion-ahead-cold-right").verdict == "contradicted"


def test_no_opinion_may_cost_more_than_the_margin_in_any_world() -> None:
    name = "opinion-level-run-useless"
    ahead = {(world, "useless"): 0.05 for world in WORLDS}
    assert verdict(ahead, name).verdict == "confirmed"
    behind = verdict(ahead | {(opinions.SHORT_LOG, "useless"): -0.05}, name)
    assert behind.verdict == "contradicted"
    assert behind.detail.startswith(opinions.SHORT_LOG)
    assert behind.effect is not None
    assert behind.effect.value == pytest.approx(-0.05, abs=0.005)


@pytest.mark.slow
def test_a_right_opinion_is_trusted_and_noise_is_not(data: Dataset, tmp_path: Path) -> None:
    config = SimulationConfig(sessions=1500, updates=3)
    plan = ReproductionPlan(exhibits.selected("opinions"), config, seed=2, trials=1)
    finished = run_plan(plan, data, tmp_path)
    assert len(finished.results) == len(WORLDS) * len(opinions.LABELS)
    display = finished.displays["opinions"]
    rows = {(row.group, row.cells[0]): row.cells for row in display.tables[0].rows}
    trusted = [rows[USUAL, opinions.LABELS[key]][-1] for key in ("right", "corrupted40", "noise")]
    shares = [cell.value for cell in trusted if not isinstance(cell, str)]
    assert shares == sorted(shares, reverse=True)  # type: ignore[type-var]
    assert (shares[0] or 0.0) > 0.5
    assert rows[USUAL, opinions.LABELS[opinions.WITHOUT]][-1] == ""
    gain, trust = display.figures[0].panels
    assert gain.series[0].y[0] > 0.05
    assert trust.series[0].y[0] == shares[0]
    bars = display.figures[1].panels[0].series
    assert [each.label for each in bars] == list(WORLDS)
    assert len(display.findings) == 3 + 2 * len(opinions.OPINIONS)
