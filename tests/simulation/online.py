"""The compiled sessions of the online rankers beside their references."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.evidence import Examination
from ebrank.rankers import registry
from ebrank.rankers.bm25 import fixed_model
from ebrank.rankers.online import BLOCK, OnlineLearner
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import run_trial
from ebrank.simulation.users import PositionBased
from tests.simulation.comparison import (
    SEED,
    Stepwise,
    assert_same_measures,
    assert_same_session,
    assert_same_statistics,
)
from tests.simulation.reference_online import DuelReference, OnlineReference, PairwiseReference
from tests.simulation.tiny import tiny

CONFIGS = {
    "the paper's": SimulationConfig(updates=4, sessions=120),
    "short lists": SimulationConfig(
        entering_probability=0.3,
        initial_candidates=(1, 3),
        warmup_sessions=3,
        updates=3,
        sessions=150,
        list_length=3,
    ),
    "long lists of which few are examined": SimulationConfig(
        updates=3,
        sessions=150,
        list_length=9,
        users=PositionBased(Examination(severity=0.5)),
        believed=Examination(curve=(0.9, 0.0, 0.8, 0.7)),
    ),
}


@dataclass
class Compared:
    """A reference after a run; `learner` is the engine's."""

    reference: OnlineReference
    learner: OnlineLearner


def with_twins(data: Dataset) -> Dataset:
    """Return a dataset in which every other item has the features of the one before: they tie."""
    features = data.features.copy()
    features[1::2] = features[:-1:2]
    return replace(data, features=features)


def reference_of(text: str, data: Dataset, config: SimulationConfig) -> OnlineReference:
    kind = PairwiseReference if text.startswith("pdgd") else DuelReference
    return kind(data, registry.parse(text), config, SEED)


def assert_sessions_agree(text: str, *, twins: bool = False, sessions: int = 60) -> Compared:
    """Run session by session: the same lists, clicks, statistics, and weights at the updates."""
    data = tiny(seed=1, sizes=(7, 1, 9, 12))
    if twins:
        data = with_twins(data)
    config = SimulationConfig(
        entering_probability=0.6, initial_candidates=(2, 4), warmup_sessions=2, list_length=4
    )
    reference = reference_of(text, data, config)
    engine = Stepwise(data, reference.ranker, config, np.uint64(reference.key))
    learner = cast(OnlineLearner, engine.learner)
    bm25 = fixed_model(data.baseline.astype(np.float64))
    for _ in range(config.warmup_sessions):
        for q in range(data.n_queries):
            expected = reference.session(q, lambda item, key: item.baseline)
            assert_same_session(engine.session(q, bm25, 0.0), expected)
    reference.update()
    model = learner.update()
    for t in range(sessions):
        got = engine.session(reference.asked(t), model, config.entering_probability)
        assert_same_session(got, reference.serve(t))
        assert_same_statistics(engine.world, reference)
        if t % 20 == 19:
            reference.update()
            model = learner.update()
            np.testing.assert_allclose(learner.weights, reference.logging, rtol=1e-10)
    return Compared(reference, learner)


def assert_threads_change_nothing(text: str) -> None:
    """Several blocks of queries, and several of sessions to be folded."""
    data = tiny(seed=5, sizes=[2 + i % 6 for i in range(150)])
    config = SimulationConfig(updates=2, warmup_sessions=1, sessions=4 * BLOCK + 900, list_length=3)
    one, two, five = (
        run_trial(data, registry.parse(text), config, SEED, 0, threads=threads)
        for threads in (1, 2, 5)
    )
    for other in (two, five):
        np.testing.assert_array_equal(other.weights, one.weights)
        np.testing.assert_array_equal(other.test_ndcg, one.test_ndcg)
        np.testing.assert_array_equal(other.warm_ndcg, one.warm_ndcg)


def assert_run_agrees(text: str, config: SimulationConfig, threads: int) -> None:
    """Run the engine, epochs grouped by query, and the reference in order of time."""
    data = tiny(seed=2)
    got = run_trial(data, registry.parse(text), config, SEED, 0, threads=threads)
    reference = reference_of(text, data, config)
    reference.run()
    assert reference.steps > 2
    assert got.weights is not None
    np.testing.assert_allclose(got.weights, reference.logging, rtol=1e-10)
    assert_same_measures(replace(got, weights=None), reference)
