"""TopRank (Lattimore, Kveton, Li and Szepesvári, TopRank: A practical algorithm for online
stochastic ranking, 2018): sorts each query's items by comparing them, under any click model.

Items are in blocks. A list takes the blocks in order, each shuffled. Whenever one of two items in
the same block is clicked and the other is not, the pair's N grows by 1 and its S by 1 or −1. Once

    S ≥ √(2N·log(c/δ·√N)),    c = 4√(2/π)/erf(√2)

the first is known to be better, for good. The first block holds the items with no better one, the
second those with no better one outside the first block, and so on (Algorithm 1 of that paper). New
items enter the first block. Features and positions play no part.

The pairs of all queries are kept: 8 bytes each, which is 600 MB for MSLR-10K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import (
    FIXED,
    Ranker,
    RunSessions,
    ScoreModel,
    Trial,
    TrialLearner,
    param,
)
from ebrank.lab.rankers.random import UNIFORM
from ebrank.model.formula import Formula
from ebrank.typing import Ints, SmallInts

if TYPE_CHECKING:
    from ebrank.lab.sessions.session import Sessions


class PairCounts(NamedTuple):
    """What is known about all pairs of items; sessions change it.

    The pairs of query q begin at offsets[q]; those of its items i > j, counted within the query,
    are i(i − 1)/2 + j beyond.

    Attributes:
        offsets: where each query's pairs begin, and where the last one's end.
        net: S of the pair, from the view of i.
        trials: N of the pair; −N once it is known which is better.
    """

    offsets: Ints
    net: SmallInts
    trials: SmallInts

    @classmethod
    def none(cls, dataset: Dataset) -> Self:
        """Return the counts of pairs nobody has compared."""
        pairs = dataset.candidates * (dataset.candidates - 1) // 2
        offsets: Ints = np.concatenate(([0], np.cumsum(pairs))).astype(np.int64)
        return cls(offsets, np.zeros(offsets[-1], np.int32), np.zeros(offsets[-1], np.int32))


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockModel(ScoreModel):
    """Blocks of items, which its sessions go on comparing."""

    pairs: PairCounts
    delta: float

    def run_sessions(self, sessions: Sessions) -> RunSessions:
        """Return a function that shows shuffled blocks, and compares their items by clicks."""
        from ebrank.lab.rankers.kernels import blocks

        return lambda start, stop: blocks.run_sessions(
            sessions, self.pairs, self.delta, start, stop
        )


def shuffled(a: float, draw: float) -> float:
    """Return a + U: whole numbers a keep their order, and equal ones are shuffled."""
    return a + draw


def unknown() -> float:
    """Return the same for every item: nobody has compared them."""
    return 0.0


SHUFFLED = Formula(shuffled, given={"draw": UNIFORM}).bind()
UNKNOWN = Formula(unknown).bind()


@dataclass(frozen=True)
class TopRank(Ranker):
    """Sorts items into blocks."""

    name = "toprank"
    help = "Sort each query's items into blocks by comparing their clicks; shuffle within blocks."
    settings = ("non-concate",)

    delta: float = param(
        1.0,
        "δ: probability of ever taking the worse of two items for the better",
        at_least=1e-9,
        at_most=1,
        grid=(0.001, 0.01, 0.1, 1.0),
    )

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that has compared nothing yet."""
        return BlockLearner(self.delta, trial, PairCounts.none(trial.dataset))


@dataclass
class BlockLearner:
    """Keeps the pairs of one trial."""

    delta: float
    trial: Trial
    pairs: PairCounts

    def update(self) -> BlockModel:
        """Return the model: a is 0 in the first block, −1 in the second, and so on."""
        from ebrank.lab.rankers.kernels import blocks

        pointers = np.array(self.trial.dataset.query_pointers)
        return BlockModel(
            a=-blocks.all_blocks(pointers, self.pairs).astype(np.float64),
            b=np.zeros(1),
            serve=SHUFFLED,
            offline=FIXED,
            cold=UNKNOWN,
            noisy=True,
            pairs=self.pairs,
            delta=self.delta,
        )
