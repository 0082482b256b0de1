"""Sessions worked out by hand: users who click all they see, beliefs that are round numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import Trial
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.lab.simulation.result import TrialResult
from ebrank.lab.simulation.users import parse
from tests.lab.simulation.tiny import tiny, watched


def one_query(n_items: int, labels: list[int] | None = None) -> Dataset:
    """A single query, of the test split; BM25 lists its items in their order."""
    return tiny(
        sizes=[n_items],
        labels=np.array(labels or [2] * n_items, np.int8),
        baseline=-np.arange(n_items, dtype=np.float32),
        query_splits=np.array([2], np.int8),
    )


def bm25_run(data: Dataset, config: SimulationConfig) -> tuple[TrialResult, Trial]:
    ranker, watch = watched("bm25")
    result = run_trial(data, ranker, config, seed=1, trial=0)
    assert watch.trial is not None
    return result, watch.trial


def test_ndcg_of_served_lists_by_hand() -> None:
    """Labels 0, 2, 1 in the order shown: R = 0.1, 1.0, 0.4; the ideal list is 1.0, 0.4, 0.1."""
    config = SimulationConfig(
        updates=1, sessions=4, warmup_sessions=0, list_length=3, initial_candidates=(3, 3),
        cutoffs=(1, 3), discount=0.5,
    )  # fmt: skip
    result, _ = bm25_run(one_query(3, labels=[0, 2, 1]), config)
    second, third = 1 / np.log2(3), 0.5
    expected = (0.1 + second + 0.4 * third) / (1.0 + 0.4 * second + 0.1 * third)
    assert result.test_ndcg == pytest.approx([expected] * 4)
    assert result.cold_ndcg == pytest.approx(np.array([[0.1, expected]]))
    assert result.cum_ndcg == pytest.approx([expected * (1 + 0.5 + 0.25 + 0.125)])
    gains = (3 * second + third) / (3 + second)
    assert result.cold_ndcg_labels == 0.0, "at the first cutoff"
    assert result.run_ndcg_labels == pytest.approx(gains)


def test_noise_changes_clicks_and_the_measure_alike() -> None:
    """With ε = 0.5, labels 0, 2, 1 have R = 0.5, 1.0, 2/3; labels alone know no noise."""
    config = SimulationConfig(
        updates=1, sessions=4, warmup_sessions=2, list_length=3, initial_candidates=(3, 3),
        cutoffs=(3,), users=parse("pbm:noise=0.5"),
    )  # fmt: skip
    data = one_query(3, labels=[0, 2, 1])
    result, trial = bm25_run(data, config)
    second, third = 1 / np.log2(3), 0.5
    expected = (0.5 + second + 2 / 3 * third) / (1.0 + 2 / 3 * second + 0.5 * third)
    assert trial.relevance == pytest.approx([0.5, 1.0, 2 / 3])
    assert result.test_ndcg == pytest.approx([expected] * 4)
    assert result.cold_ndcg == pytest.approx(expected)
    quiet, _ = bm25_run(data, replace(config, users=parse("pbm")))
    assert result.run_ndcg_labels == quiet.run_ndcg_labels == result.cold_ndcg_labels


def test_labels_above_0_may_be_made_1() -> None:
    config = SimulationConfig(
        updates=1, sessions=4, warmup_sessions=0, list_length=3, initial_candidates=(3, 3),
        labels="binary",
    )  # fmt: skip
    result, trial = bm25_run(one_query(3, labels=[0, 2, 1]), config)
    assert trial.relevance == pytest.approx([0.1, 1.0, 1.0])
    assert trial.dataset.labels.tolist() == [0, 1, 1]
    assert trial.dataset.max_label == 1
    second, third = 1 / np.log2(3), 0.5
    assert result.run_ndcg_labels == pytest.approx((second + third) / (1 + second))
