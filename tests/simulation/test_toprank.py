"""TopRank's compiled sessions beside a slow program written from the paper."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank.rankers.kernels import blocks as kernels
from ebrank.rankers.toprank import BlockLearner, PairCounts
from ebrank.simulation.config import SimulationConfig
from tests.kept import kept
from tests.simulation.comparison import assert_sessions_agree, reference_of
from tests.simulation.reference_online import Pair, TopRankReference
from tests.simulation.tiny import tiny

pair = kept(kernels.pair)
DATA = tiny(seed=1, sizes=(7, 1, 9, 12))


@pytest.mark.parametrize("text", ["toprank", "toprank:delta=0.1"])
def test_session_by_session(text: str) -> None:
    config = SimulationConfig(
        entering_probability=0.6, initial_candidates=(2, 4), warmup_sessions=2, list_length=4
    )
    reference = reference_of(text, DATA, config)
    assert isinstance(reference, TopRankReference)
    engine = assert_sessions_agree(reference, 400)
    assert len(reference.G) > 5
    assert isinstance(engine.learner, BlockLearner)
    pairs = engine.learner.pairs
    for q, first in enumerate(DATA.query_pointers[:-1]):
        for i in range(DATA.candidates[q]):
            for j in range(i):
                place = pairs.offsets[q] + pair(i, j)
                rows = int(first + i), int(first + j)
                assert pairs.net[place] == reference.S.get(rows, 0)
                assert abs(pairs.trials[place]) == reference.N.get(rows, 0)
                assert (pairs.trials[place] < 0) == bool({rows, rows[::-1]} & reference.G)


def counts(better: list[Pair], n: int) -> PairCounts:
    """Return counts of n items of one query, where the first of each pair is known as better."""
    offsets = np.array([0, n * (n - 1) // 2])
    pairs = PairCounts(offsets, np.zeros(offsets[1], np.int32), np.zeros(offsets[1], np.int32))
    for i, j in better:
        place = pair(max(i, j), min(i, j))
        pairs.net[place], pairs.trials[place] = (9 if i > j else -9), -9
    return pairs


@pytest.mark.parametrize(
    ("better", "blocks"),
    [
        ([], [0, 0, 0, 0]),
        ([(3, 0)], [1, 0, 0, 0]),
        ([(3, 2), (2, 1), (1, 0)], [3, 2, 1, 0]),
        ([(0, 1), (0, 2), (1, 3), (2, 3)], [0, 1, 1, 2]),
        ([(0, 1), (1, 2), (2, 0)], [1, 1, 1, 0]),  # a circle below the first block
        ([(0, 1), (1, 2), (2, 3), (3, 0)], [0, 0, 0, 0]),
    ],
)
def test_blocks_hold_what_nothing_left_is_better_than(
    better: list[Pair], blocks: list[int]
) -> None:
    assert kernels.all_blocks(np.array([0, 4]), counts(better, 4)).tolist() == blocks
