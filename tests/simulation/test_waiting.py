"""Waits worked out by hand; `test_against_reference` compares them in whole runs."""

from __future__ import annotations

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import run_trial
from ebrank.simulation.result import TrialResult
from tests.simulation.comparison import SEED
from tests.simulation.reference import Reference
from tests.simulation.tiny import tiny

ITEMS = 6
CONFIG = SimulationConfig(
    updates=4, sessions=8, warmup_sessions=3, list_length=2, initial_candidates=(1, 1), cutoffs=(1,)
)


def one_query(split: int = 2, labels: tuple[int, ...] = (2,) * ITEMS) -> Dataset:
    """A single query; BM25 lists its items in their order."""
    return tiny(
        sizes=[ITEMS],
        labels=np.array(labels, np.int8),
        baseline=-np.arange(ITEMS, dtype=np.float32),
        query_splits=np.array([split], np.int8),
    )


def order_of_entering(data: Dataset) -> list[int]:
    """Return rows; one is there at the start, and one enters at each session after that."""
    (query,) = Reference(data, registry.parse("bm25"), CONFIG, SEED).queries
    return [item.row for item in (*query.candidates, *query.masked)]


def run(text: str, data: Dataset, config: SimulationConfig = CONFIG) -> TrialResult:
    return run_trial(data, registry.parse(text), config, SEED, trial=0)


def test_waits_of_a_ranker_that_never_learns() -> None:
    """BM25 shows the two lowest rows that are there: at once or never. Updates come every two."""
    data = one_query()
    order = order_of_entering(data)
    expected = {}
    for session, row in enumerate(order[1:]):
        there = sorted(order[: session + 2])
        at_once = row in there[:2]
        update = session // 2  # the next one follows the session 2 · update + 1
        in_top = row in sorted(order[: 2 * update + 3])[:2]
        top = 2 * update + 1 - session if in_top else -1
        expected[row] = (0 if at_once else -1, top, 7 - session)
    got = run("bm25", data)
    rows = sorted(expected)
    assert got.wait_shown.tolist() == [expected[row][0] for row in rows]
    assert got.wait_top.tolist() == [expected[row][1] for row in rows]
    assert got.watched.tolist() == [expected[row][2] for row in rows]
    assert 0 in got.wait_shown
    assert -1 in got.wait_shown
    assert {-1, 0} < set(got.wait_top.tolist())
