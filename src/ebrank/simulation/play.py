"""Runs planned sessions on all cores, whatever kind of model makes the lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ebrank.rankers.dbgd import DuelModel, Duels
from ebrank.rankers.model import ScoreModel
from ebrank.rankers.pdgd import Pairs, PairwiseModel
from ebrank.rankers.toprank import BlockModel
from ebrank.simulation import blocks, duels, pairwise, scored
from ebrank.simulation.schedule import Schedule
from ebrank.simulation.world import World
from ebrank.threads import map_blocks
from ebrank.typing import Compiled, Floats

FEWEST_QUERIES, MOST_BLOCKS = 64, 16


def block_size(n_queries: int) -> int:
    """Return how many queries make a block: enough blocks to share, but few to start."""
    return max(FEWEST_QUERIES, -(-n_queries // MOST_BLOCKS))


Tally: TypeAlias = tuple[Floats, Floats]
"""Exposure and clicks by age."""

Runner: TypeAlias = Callable[[int, int], Tally]
"""Runs the planned sessions of a range of queries."""


def play(
    world: World,
    model: ScoreModel,
    plan: Schedule,
    browse: Compiled,
    eta: float,
    key: np.uint64,
    threads: int | None,
) -> tuple[Floats, Floats]:
    """Return the NDCG of each session in order of time, and exposure and clicks by age."""
    served = np.empty(len(plan.times))
    tallies = map_blocks(
        runner(world, model, plan, browse, eta, key, served),
        total=len(world.entered),
        block=block_size(len(world.entered)),
        threads=threads,
    )
    return served, np.add.reduce(tallies)


def runner(
    world: World,
    model: ScoreModel,
    plan: Schedule,
    browse: Compiled,
    eta: float,
    key: np.uint64,
    served: Floats,
) -> Runner:
    """Return the function that runs sessions of this kind of model; online models learn."""
    n, length = len(plan.times), len(world.discounts)
    if isinstance(model, DuelModel):
        wins = np.zeros((n, model.candidates), np.bool_)
        results = duels.DuelLog(np.empty(n, np.uint64), wins)
        model.lessons.append(Duels(*results))
        duel = duels.Duel(model.step, model.disputed_only)
        return lambda start, stop: duels.run_sessions(
            world, model.linear, duel, browse, eta, key, plan, start, stop, served, results
        )
    if isinstance(model, PairwiseModel):
        log = pairwise.PairLog(
            rows=np.zeros((n, length), np.int64),
            weights=np.zeros((n, length)),
            behavior=np.zeros((n, length)),
            stepped=np.zeros(n, np.bool_),
        )
        model.lessons.append(Pairs(*log))
        return lambda start, stop: pairwise.run_sessions(
            world, model.linear, browse, eta, key, plan, start, stop, served, log
        )
    if isinstance(model, BlockModel):
        return lambda start, stop: blocks.run_sessions(
            world, model.pairs, model.delta, browse, eta, key, plan, start, stop, served
        )
    scorer = scored.Scorer.of(model.serve, model.a, model.b)
    return lambda start, stop: scored.run_sessions(
        world,
        scorer,
        browse,
        model.noisy,
        eta,
        key,
        plan.starts,
        plan.times,
        start,
        stop,
        served,
    )
