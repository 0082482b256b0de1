"""Lists of a model on all cores: those of planned sessions, and those it would show by itself."""

from __future__ import annotations

import numpy as np

from ebrank.kernels import streams
from ebrank.kernels.compiled import kernel
from ebrank.kernels.threads import map_blocks
from ebrank.lab.rankers.base import ScoreModel
from ebrank.lab.sessions.scored import Scorer, check, room_for_batch, write_top
from ebrank.lab.sessions.world import Schedule, Sessions, World
from ebrank.model.formula import Score
from ebrank.typing import Compiled, Floats, Ints

FEWEST_QUERIES, MOST_BLOCKS = 64, 16
NOBODY = -1
"""Pads a list if its query has too few candidates."""


def block_size(n_queries: int) -> int:
    """Return the queries per block: enough blocks to balance cores, few enough to start cheaply."""
    return max(FEWEST_QUERIES, -(-n_queries // MOST_BLOCKS))


def play(
    world: World,
    model: ScoreModel,
    plan: Schedule,
    browse: Compiled,
    eta: float,
    key: np.uint64,
    threads: int | None,
    begin: int = 0,
) -> Floats:
    """Return the NDCG of each session in order of time.

    `begin` is the session of the run with which the plan begins; negative before the run.
    """
    served = np.empty(len(plan.times))
    sessions = Sessions(
        world,
        browse,
        eta,
        begin,
        arrivals=np.uint64(streams.child(key, streams.ARRIVALS)),
        users=np.uint64(streams.child(key, streams.USERS)),
        ranker=np.uint64(streams.child(key, streams.RANKER)),
        plan=plan,
        ndcg=served,
    )
    map_blocks(
        model.run_sessions(sessions),
        total=len(world.entered),
        block=block_size(len(world.entered)),
        threads=threads,
    )
    return served


def best_lists(
    world: World, model: ScoreModel, score: Score, queries: Ints, length: int, threads: int | None
) -> Ints:
    """Return the best rows of each query (rows) by one of a model's scores, without exploration."""
    scorer = Scorer.of(score, model.a, model.b)
    lists: Ints = np.empty((len(queries), length), np.int64)
    map_blocks(
        lambda start, stop: write_best(world, scorer, queries[start:stop], lists[start:stop]),
        total=len(queries),
        block=block_size(len(queries)),
        threads=threads,
    )
    return lists


@kernel
def write_best(world: World, scorer: Scorer, queries: Ints, lists: Ints) -> None:
    """Write each query's best candidates, those that have entered, into its row of `lists`."""
    length = lists.shape[1]
    values, doubt, batch = np.empty(length), 0.0, room_for_batch()
    for i, q in enumerate(queries):
        key = np.uint64(0)
        doubt += write_top(world, scorer, q, key, batch, values, lists[i])
        lists[i, min(length, world.entered[q]) :] = NOBODY
    check(doubt)


def list_ndcg(
    lists: Ints, relevance: Floats, discounts: Floats, cutoffs: Ints, ideal: Floats
) -> Floats:
    """Return the NDCG of each list (rows) at each cutoff (columns), eq:NDCG.

    `discounts` covers the whole length of the lists. `ideal` is the best DCG of each query at each
    cutoff over all its items, entered or not. If nothing is relevant, any list scores 1.
    """
    gains = np.where(lists == NOBODY, 0.0, relevance[lists])
    dcg = np.cumsum(gains * discounts, axis=1)[:, cutoffs - 1]
    return np.divide(dcg, ideal, out=np.ones_like(ideal), where=ideal > 0.0)
