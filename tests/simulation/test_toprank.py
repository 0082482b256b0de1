"""TopRank's compiled sessions beside a slow program written from the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from ebrank.evidence import Examination
from ebrank.rankers import registry
from ebrank.rankers.bm25 import fixed_model
from ebrank.rankers.kernels import blocks as kernels
from ebrank.rankers.toprank import BlockLearner, PairCounts
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import run_trial
from ebrank.simulation.users import PositionBased, parse
from ebrank.testing import plain
from tests.kept import kept
from tests.simulation.comparison import SEED, assert_same_measures, assert_sessions_agree
from tests.simulation.reference import Reference
from tests.simulation.state import Item, Query, Session
from tests.simulation.tiny import tiny

Pair = tuple[int, int]

pair, prefer = kept(kernels.pair), kept(kernels.prefer)


@dataclass
class TopRankReference(Reference):
    """Algorithm 1: S and N of ordered pairs, and G, which holds (j, i) where i is better than j.

    A pair that G knows is not compared again, which the paper's blocks see to by themselves.
    """

    S: dict[Pair, int] = field(default_factory=dict)
    N: dict[Pair, int] = field(default_factory=dict)
    G: set[Pair] = field(default_factory=set)

    def update(self) -> None:
        self.model = fixed_model(np.zeros(1))

    def partition(self, query: Query) -> list[set[int]]:
        """P_d = min_G of the items that are in no block before."""
        left = {item.row for item in query.candidates}
        blocks = []
        while left:
            block = {i for i in left if not any((i, j) in self.G for j in left)} or set(left)
            blocks.append(block)
            left -= block
        return blocks

    def serve(self, t: int) -> Session:
        q = self.asked(t)
        self.enter(q)
        blocks = self.partition(self.queries[q])
        place = {row: d for d, block in enumerate(blocks) for row in block}
        session = self.session(q, lambda item, key: plain.uniform(key) - place[item.row])
        self.log.append(session)
        seen = zip(session.rows, session.clicked, self.believed, strict=False)
        clicks = {row: int(click and p > 0) for row, click, p in seen}
        compared = [(i, j) for block in blocks for i in block for j in block - {i}]
        for i, j in [pair for pair in compared if not {pair, pair[::-1]} & self.G]:
            self.S[i, j] = self.S.get((i, j), 0) + clicks.get(i, 0) - clicks.get(j, 0)
            self.N[i, j] = self.N.get((i, j), 0) + abs(clicks.get(i, 0) - clicks.get(j, 0))
        self.G |= {(j, i) for i, j in compared if self.is_enough(self.S[i, j], self.N[i, j])}
        return session

    def is_enough(self, S: int, N: int) -> bool:
        delta = self.ranker.value("delta")
        c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
        return N > 0 and math.sqrt(2 * N * math.log(c / delta * math.sqrt(N))) <= S

    def offline_score(self, item: Item, cold: bool) -> float:
        blocks = self.partition(next(q for q in self.queries if item in q.items))
        return 0.0 if cold else -float(next(d for d, b in enumerate(blocks) if item.row in b))


CONFIGS = {
    "the paper's": SimulationConfig(updates=4, sessions=700),
    "few enter, short lists": SimulationConfig(
        entering_probability=0.1,
        initial_candidates=(2, 3),
        warmup_sessions=3,
        updates=3,
        sessions=900,
        list_length=3,
        users=PositionBased(Examination(cutoff=2)),
    ),
    "long lists, mistaken belief": SimulationConfig(
        updates=2,
        sessions=600,
        list_length=9,
        users=parse("cascade:cutoff=8"),
        believed=Examination(curve=(0.9, 0.0, 0.8, 0.7)),
    ),
}
DATA = tiny(seed=1, sizes=(7, 1, 9, 12))


@pytest.mark.parametrize("text", ["toprank", "toprank:delta=0.1"])
def test_session_by_session(text: str) -> None:
    config = SimulationConfig(
        entering_probability=0.6, initial_candidates=(2, 4), warmup_sessions=2, list_length=4
    )
    reference = TopRankReference(DATA, registry.parse(text), config, SEED)
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


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("text", ["toprank", "toprank:delta=0.1"])
def test_whole_run(text: str, config: str) -> None:
    got = run_trial(DATA, registry.parse(text), CONFIGS[config], SEED, 0, threads=2)
    reference = TopRankReference(DATA, registry.parse(text), CONFIGS[config], SEED)
    reference.run()
    assert len(reference.G) > 0
    assert_same_measures(got, reference)


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
