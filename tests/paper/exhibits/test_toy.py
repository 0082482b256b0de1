"""The toy example: G is A's twin, and what is drawn is what the simulator did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ebrank
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import fixed_model
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.paper.exhibits import toy
from ebrank.paper.framework.exhibit import Setup

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def setup() -> Setup:
    return Setup(ebrank.load("mq2007-like", scale=0.01), SimulationConfig(), seed=1)


def warmed_up(setup: Setup, ranker: str) -> toy._Service:
    """Return a service whose log BM25 made."""
    service = toy._Service(toy.dataset(setup.seed), registry.parse(ranker), setup)
    service.serve(fixed_model(service.data.baseline.astype(np.float64)), 20)
    return service


def test_the_new_item_is_the_old_ones_twin() -> None:
    data = toy.dataset(1)
    by_query = data.features.reshape(data.n_queries, len(toy.ITEMS), -1)
    assert np.array_equal(by_query[:, toy.NEW], by_query[:, toy.OLD])
    assert toy.LABELS[toy.NEW] == toy.LABELS[toy.OLD] == data.max_label
    assert [len(data.queries_in(split)) for split in toy.QUERIES] == [60, 20, 20]
    assert not np.array_equal(data.features, toy.dataset(2).features)


def test_nobody_sees_the_new_item_before_it_enters(setup: Setup) -> None:
    service = warmed_up(setup, "ebrank")
    service.serve(service.learner.update(), 5)
    by_item = service.trial.stats.shown.reshape(-1, len(toy.ITEMS)).sum(axis=0)
    assert by_item[toy.NEW] == 0
    assert by_item.sum() == 25 * 5 * service.data.n_queries


@pytest.mark.parametrize("ranker", ["cftopk:features=concate", "ebrank"])
def test_the_new_item_is_shown_where_its_rank_says(setup: Setup, ranker: str) -> None:
    service = warmed_up(setup, ranker)
    service.world.entered[:] = len(toy.ITEMS)
    expected = np.zeros(toy.QUERIES["test"])
    for _ in range(6):
        model = service.learner.update()
        expected += service.ranks(model) <= setup.config.list_length
        service.serve(model, 1)
    assert np.array_equal(service.of_items(service.trial.stats.shown)[:, toy.NEW], expected)


def test_the_picture_of_a_model_that_leans_on_clicks_and_buries_the_new_item(setup: Setup) -> None:
    first = toy.display(setup, {})
    assert toy.display(setup, {}) == first
    assert toy.display(replace(setup, seed=2), {}) != first
    (figure,), (table,), (finding,) = first.figures, first.tables, first.findings
    bars, lines = figure.panels
    assert (bars.kind, lines.kind) == ("bars", "lines")
    assert [series.style for series in bars.series] == ["oracle", "cftopk", "ebrank"]
    assert bars.series[0].y == pytest.approx((1.0, 0.4, 0.4, 0.1, 0.1, 0.1, 1.0))
    for line in lines.series:
        assert len(line.x) == len(line.y) == toy.AFTER + 1
        assert all(1 <= rank <= len(toy.ITEMS) for rank in line.y)
    assert {len(row.cells) for row in table.rows} == {len(table.columns)}
    biased, ours = lines.series
    assert biased.y[0] > setup.config.list_length > ours.y[0]
    assert finding.verdict == "confirmed"
    assert finding.effect is not None
    assert finding.effect.value > 2
