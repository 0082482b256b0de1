"""A shop whose queries share items: who takes part, what is measured, and what it shows."""

from __future__ import annotations

import numpy as np
import pytest

import ebrank
from ebrank.errors import DataError
from ebrank.evidence import BehaviorStats, Examination
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Trial
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial, simulate
from ebrank.lab.simulation.result import SHARES
from ebrank.paper.exhibits import shared
from ebrank.paper.framework.display import Cell
from ebrank.paper.framework.exhibit import Setup

SMALL = SimulationConfig(updates=3)


@pytest.fixture(scope="module")
def setup() -> Setup:
    """Two small worlds of each kind."""
    return Setup(ebrank.load("shop-like", scale=0.05), SMALL, seed=3, trials=2)


def test_worlds_of_a_number_differ_only_in_what_conditions_say(setup: Setup) -> None:
    plain, other = (shared.shop(setup, shared.Condition(-1.6, tau), 1) for tau in (0.0, 1.2))
    assert np.array_equal(plain.features, other.features)
    assert not np.array_equal(plain.labels, other.labels)
    known = shared.shop(setup, shared.Condition(-1.6, 1.2), 1, known=True)
    assert np.array_equal(known.labels, other.labels)
    assert known.n_features == other.n_features + 1
    next_world = shared.shop(setup, shared.Condition(-1.6, 1.2), 2)
    assert not np.array_equal(next_world.features, other.features)
    config = shared.config_for(setup, plain)
    assert (config.traffic, config.warmup_sessions) == ("zipf", 0)
    assert config.session_count(plain) == 75 * plain.n_queries


def test_an_items_click_rate_is_over_all_its_queries() -> None:
    data = ebrank.load("shop-like", scale=0.05)
    assert data.items is not None
    stats = BehaviorStats.of(shown=np.full(data.n_rows, 3), clicks=data.items % 3)
    trial = Trial(data, np.zeros(data.n_rows), stats, Examination(), np.uint64(1))
    learner = shared.ItemRateLearner(trial)
    learner.update()
    column = learner._learner.trial.dataset.features[:, -1]
    queries = np.bincount(data.items)[data.items]
    wanted = (queries * (data.items % 3) + 0.2) / (queries * 3 + 2)
    assert column == pytest.approx(wanted)
    assert data.n_features == 8, "the dataset stays as it was"


def test_documents_of_one_query_have_no_click_rate_elsewhere() -> None:
    data = ebrank.load("mq2007-like", scale=0.02)
    with pytest.raises(DataError, match="belong to one query each"):
        simulate(data, shared.ItemRate(), SimulationConfig(sessions=50, updates=1), seed=1)
    assert registry.parse(shared.ITEM_RATE) == shared.ItemRate()


@pytest.mark.parametrize("learn_from", ["train", "all"])
def test_where_documents_belong_to_one_query_sharing_changes_no_bit(learn_from: str) -> None:
    data = ebrank.load("mq2007-like", scale=0.03)
    assert data.items is None
    config = SimulationConfig(sessions=1500, updates=4)
    with_, without = (
        run_trial(data, registry.parse(f"auto:{shares}learn_from={learn_from}"), config, 5, 0)
        for shares in ("", "shared=none,")
    )
    for measure in ("cold_ndcg", "warm_ndcg", "cum_ndcg", "run_ndcg", "weights"):
        assert np.array_equal(getattr(with_, measure), getattr(without, measure))


def test_the_same_items_by_number_in_one_query_each_change_no_bit() -> None:
    """Even if the dataset says so."""
    whole = ebrank.load("shop-like:tau=1.2", scale=0.05)
    apart = Dataset(**{**vars(whole), "items": np.arange(whole.n_rows)})
    config = SimulationConfig(sessions=800, updates=3)
    with_, without = (
        run_trial(apart, registry.parse(text), config, 5, 0, threads=1)
        for text in (shared.AUTO, shared.ALONE)
    )
    assert np.array_equal(with_.run_ndcg, without.run_ndcg)
    assert np.array_equal(with_.weights, without.weights)  # type: ignore[arg-type]


@pytest.mark.slow
def test_sharing_helps_rare_queries_where_items_differ(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions = (shared.Condition(-1.6, 0.0), shared.Condition(-1.6, 1.2))
    monkeypatch.setattr(shared, "CONDITIONS", conditions)
    monkeypatch.setattr(shared, "LEVELS", {-1.6: "clicks common"})
    monkeypatch.setattr(shared, "TAUS", (0.0, 1.2))
    display = shared.display(setup, {})
    (table,), (figure,) = display.tables, display.figures
    assert [column.title for column in table.columns] == ["ranker", *shared.TITLES]
    assert len(table.rows) == len(conditions) * len(shared.CONTESTANTS)
    shown = {
        (row.group.rpartition(" ")[2], row.cells[0]): [
            cell.value or 0.0 for cell in row.cells[1:] if isinstance(cell, Cell)
        ]
        for row in table.rows
    }
    rare = SHARES.index("rare")
    ours, alone = (shown["1.2", who][rare] for who in ("EBRank auto", "each query alone"))
    assert ours > alone + 0.01
    assert shown["1.2", "item effect known"][rare] > ours
    bound = [row for row in table.rows if row.apart]
    assert not any(cell.best for row in bound for cell in row.cells if isinstance(cell, Cell))
    assert [panel.title for panel in figure.panels] == [
        "rare queries, clicks common",
        "new items, clicks common",
    ]
    drawn = {series.label: series for series in figure.panels[0].series}
    assert "Smoothed CTR" not in drawn
    assert drawn["EBRank auto"].x == (0.0, 1.2)
    assert drawn["EBRank auto"].y[1] == pytest.approx(ours)
