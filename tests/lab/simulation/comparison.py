"""The compiled engine beside the slow reference."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.lab.simulation.result import TrialResult
from tests.lab.simulation.reference import Reference
from tests.lab.simulation.reference_online import (
    DuelReference,
    OnlineReference,
    PairwiseReference,
    TopRankReference,
)
from tests.lab.simulation.state import Item
from tests.lab.simulation.tiny import watched

SEED = 3


def reference_of(
    text: str, dataset: Dataset, config: SimulationConfig, trial: int = 0
) -> Reference:
    """Return the slow simulator of a ranker: those that learn in their sessions have their own."""
    kinds: dict[str, type[Reference]] = {
        "dbgd": DuelReference,
        "mgd": DuelReference,
        "pdgd": PairwiseReference,
        "toprank": TopRankReference,
    }
    kind = kinds.get(text.partition(":")[0], Reference)
    return kind(dataset, registry.parse(text), config, SEED, trial)


def assert_same_measures(got: TrialResult, reference: Reference) -> None:
    """Everything a trial reports, at every checkpoint and for every session."""
    points = reference.checkpoints
    on_test = [session for session in reference.log if reference.split(session) == "test"]
    assert got.sessions.tolist() == [point.sessions for point in points]
    assert got.test_queries.tolist() == [session.query for session in on_test]
    np.testing.assert_allclose(got.test_ndcg, [session.ndcg for session in on_test], rtol=1e-11)
    np.testing.assert_allclose(got.cum_ndcg, [point.cum_ndcg for point in points], rtol=1e-11)
    np.testing.assert_allclose(got.run_ndcg, [point.run_ndcg for point in points], rtol=1e-11)
    np.testing.assert_allclose(got.run_by_query.sum(), points[-1].run_ndcg, rtol=1e-11)
    np.testing.assert_allclose(got.cum_by_query.sum(), points[-1].cum_ndcg, rtol=1e-11)
    for mine, theirs in (("cold_ndcg", "cold"), ("warm_ndcg", "warm")):
        by_query = np.array([getattr(point, theirs) for point in points])
        np.testing.assert_allclose(getattr(got, mine), by_query.mean(axis=1), rtol=1e-11)
        last = getattr(got, f"{theirs}_by_query")
        np.testing.assert_allclose(last, by_query[-1, :, 0], rtol=1e-11)
    assert got.validation_ndcg == pytest.approx(reference.validation_ndcg(), rel=1e-11)
    assert_same_waits(got, reference)
    assert_same_calibration(got, reference)
    if isinstance(reference, OnlineReference):
        assert got.weights is not None
        np.testing.assert_allclose(got.weights, reference.logging, rtol=1e-10)
    elif reference.model.weights is None:
        assert got.weights is None
    else:
        np.testing.assert_array_equal(got.weights, reference.model.weights)


def assert_same_waits(got: TrialResult, reference: Reference) -> None:
    """Every age at which something first happened, by the reference and its snapshots."""
    shown, top, watched = [], [], []
    for q, item in awaited(reference):
        served = [session for session in reference.log if session.query == q]
        entered = item.entered_at or 0
        since = served[entered - reference.config.warmup_sessions :]
        arrivals = [s.sessions[q] - 1 - entered for s in reference.snapshots if item.row in s.top]
        shown.append(-1 if item.first_shown is None else item.first_shown - entered)
        top.append(min(arrivals, default=-1))
        watched.append(len(since) - 1)
    assert got.wait_shown.tolist() == shown
    assert got.wait_top.tolist() == top
    assert got.watched.tolist() == watched


def awaited(reference: Reference) -> list[tuple[int, Item]]:
    """Return the most relevant items of test queries that entered, with the query of each."""
    labels, highest = reference.dataset.labels, reference.dataset.max_label
    return [
        (q, item)
        for q, query in enumerate(reference.queries)
        for item in query.items
        if query.split == "test" and labels[item.row] == highest and item.entered_at is not None
    ]


def assert_same_calibration(got: TrialResult, reference: Reference) -> None:
    """What the prior said half-way of items never shown, and how they fared after that."""
    then = reference.snapshots[reference.config.updates // 2]
    if then.prior is None:
        assert got.calibration is None
        return
    items = [item for query in reference.queries for item in query.items]
    later = [item for item in items if item.row in then.unseen and item.n > 0]
    alpha, beta = np.broadcast_arrays(*then.prior)
    expected = [(alpha[i.row], beta[i.row], i.c, i.E, reference.habits(i)[0]) for i in later]
    assert got.calibration is not None
    np.testing.assert_array_equal(got.calibration, np.array(expected).reshape(-1, 5))


def assert_whole_run_agrees(
    text: str,
    config: SimulationConfig,
    dataset: Dataset,
    *,
    trial: int = 0,
    threads: int = 2,
) -> Reference:
    """Run the engine, phases grouped by query, and the reference in order of time; return that."""
    ranker, watch = watched(text)
    got = run_trial(dataset, ranker, config, SEED, trial, threads=threads)
    reference = reference_of(text, dataset, config, trial).run()
    assert_same_measures(got, reference)
    assert watch.trial is not None
    items = [item for query in reference.queries for item in query.items]
    assert watch.trial.stats.counts.tolist() == [reference.counts_of(item) for item in items]
    assumed = reference.model.examination or watch.trial.examination
    sums = watch.trial.stats.sums(assumed)
    assert sums.shown.tolist() == [item.n for item in items]
    assert sums.clicks.tolist() == [item.c for item in items]
    assert sums.weighted_clicks.tolist() == [item.C for item in items]
    assert sums.exposure.tolist() == [item.E for item in items]
    return reference
