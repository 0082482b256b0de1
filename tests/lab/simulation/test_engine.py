from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from ebrank.errors import DataError
from ebrank.kernels import streams
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.sessions import scored
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import _Run, run_trial, simulate
from tests.lab.simulation.tiny import tiny

CONFIG = SimulationConfig(updates=4, sessions=130, warmup_sessions=2)
BM25 = registry.parse("bm25")


def first_shown(data: Dataset, trial: int) -> list[int]:
    """Return the rows that the initial log shows."""
    config = replace(CONFIG, initial_candidates=(10, 10))
    run = _Run(data, config, streams.trial_key(1, trial), threads=1)
    run.warm_up()
    return [int(row) for row in np.flatnonzero(run.trial.stats.shown)]


def test_without_a_baseline_the_initial_log_is_in_an_order_drawn_for_the_trial() -> None:
    data = tiny(sizes=(10, 10, 10))
    distinct = replace(data, baseline=np.arange(data.n_rows, dtype=np.float32))
    assert len({tuple(first_shown(distinct, trial)) for trial in range(9)}) == 1
    unknown = replace(data, baseline=np.zeros(data.n_rows, np.float32))
    orders = [first_shown(unknown, trial) for trial in range(400)]
    assert orders[:9] == [first_shown(unknown, trial) for trial in range(9)]
    counts = np.bincount(np.concatenate(orders), minlength=data.n_rows)
    assert np.abs(counts - 200).max() < 50, "each of ten is among the five in half of all trials"


def without(data: Dataset, split: int) -> Dataset:
    """Return the dataset with the queries of one split given to another."""
    other = 1 if split == 0 else 0
    splits = np.where(data.query_splits == split, other, data.query_splits)
    return replace(data, query_splits=splits.astype(np.int8))


@pytest.mark.parametrize("split", [0, 1], ids=["train", "validation"])
@pytest.mark.parametrize("text", registry.built_in())
def test_a_ranker_does_without_train_or_validation_queries(text: str, split: int) -> None:
    data = tiny()
    data = (
        replace(data, query_splits=np.maximum(data.query_splits, 1))
        if split == 0
        else without(data, 1)
    )
    trial = run_trial(data, registry.parse(text), CONFIG, seed=1, trial=0)
    assert np.isnan(trial.validation_ndcg) == (split == 1)
    assert np.all(np.isfinite(trial.cum_ndcg))


def test_without_test_queries_there_is_nothing_to_measure() -> None:
    with pytest.raises(DataError, match="'tiny' has no test queries"):
        simulate(without(tiny(), 2), BM25, CONFIG)


def test_a_dataset_that_cannot_be_written_to_compiles_nothing_anew() -> None:
    data = tiny()
    run_trial(data, BM25, CONFIG, seed=1, trial=0)
    before = len(scored.run_sessions.signatures)  # type: ignore[attr-defined]
    for field in fields(Dataset):
        if isinstance(getattr(data, field.name), np.ndarray):
            getattr(data, field.name).flags.writeable = False
    run_trial(data, BM25, CONFIG, seed=1, trial=0)
    assert len(scored.run_sessions.signatures) == before  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", [*sorted(registry.built_in()), "ebrank:bonus=horizon"])
def test_nobody_knows_how_long_the_run_will_be(text: str) -> None:
    """The same updates after the same sessions: the announced length changes no bit before."""
    short, long = (
        simulate(
            tiny(seed=9, sizes=[12] * 30),
            registry.parse(text),
            SimulationConfig(sessions=300 * times, updates=3 * times),
            seed=4,
        ).trials[0]
        for times in (1, 10)
    )
    assert len(short.test_ndcg) > 50
    for measure in ("test_queries", "test_ndcg", "cum_ndcg", "cold_ndcg", "warm_ndcg"):
        whole = getattr(short, measure)
        np.testing.assert_array_equal(getattr(long, measure)[: len(whole)], whole, measure)
