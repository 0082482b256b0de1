"""Sessions of a model on all cores, as planned; and the lists that it would show by itself.

A phase is the sessions between two model updates. In it only behavior statistics change, and those
are per query. So running its sessions grouped by query, each query's in order, gives exactly what
running them in time order gives, while a query's state stays in cache and queries run in parallel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebrank.kernels import streams
from ebrank.kernels.compiled import kernel
from ebrank.kernels.threads import map_blocks
from ebrank.lab.rankers.base import ScoreModel
from ebrank.lab.sessions.scored import Scorer, check, room_for_batch, write_top
from ebrank.lab.sessions.session import Schedule, Sessions, World
from ebrank.model.formula import Score
from ebrank.typing import Compiled, Floats, Ints

FEWEST_QUERIES, MOST_BLOCKS = 64, 16
NOBODY = -1
"""Pads a list if its query has too few candidates."""


class Popularity(NamedTuple):
    """Zipf traffic: the query of rank r, from 1, is asked with probability ∝ 1/r.

    Attributes:
        order: the queries from the most to the least popular.
        cumulative: probability of that query or a more popular one; the last is 1.
    """

    order: Ints
    cumulative: Floats


def zipf(key: np.uint64, n_queries: int) -> Popularity:
    """Return queries' popularity in a random order; `key` is the key of the popularity stream."""
    draws = streams.uniforms(key, 0, n_queries)
    weights = 1.0 / np.arange(1.0, n_queries + 1.0)
    cumulative = np.cumsum(weights) / weights.sum()
    cumulative[-1] = 1.0
    return Popularity(np.argsort(draws, kind="stable"), cumulative)


def grouped(asked: Ints, n_queries: int) -> Schedule:
    """Return the sessions of each query, in order of time."""
    starts = np.append(0, np.cumsum(np.bincount(asked, minlength=n_queries)))
    small = asked.astype(np.min_scalar_type(n_queries))  # NumPy sorts 16 bits by counting
    return Schedule(starts, np.argsort(small, kind="stable"))


def phase(
    key: np.uint64, first: int, stop: int, n_queries: int, popularity: Popularity | None = None
) -> tuple[Ints, Schedule]:
    """Return the queries asked in a phase, in time order and grouped; all as often by default.

    `key` is the key of the queries stream.
    """
    draws = streams.uniforms(key, first, stop)
    if popularity is None:
        asked: Ints = (draws * n_queries).astype(np.int64)
    else:  # the first whose cumulative probability exceeds the draw
        asked = popularity.order[np.searchsorted(popularity.cumulative, draws, side="right")]
    return asked, grouped(asked, n_queries)


def everyone(sessions: int, n_queries: int) -> Schedule:
    """Return a schedule with the same number of sessions for each query."""
    starts = np.arange(n_queries + 1) * sessions
    return Schedule(starts, np.arange(n_queries * sessions))


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
