"""Runs planned sessions on all cores, whatever kind of model makes the lists."""

from __future__ import annotations

import numpy as np

from ebrank.kernels import streams
from ebrank.kernels.threads import map_blocks
from ebrank.rankers.model import ScoreModel
from ebrank.sessions.world import Schedule, Sessions, World
from ebrank.typing import Compiled, Floats

FEWEST_QUERIES, MOST_BLOCKS = 64, 16


def block_size(n_queries: int) -> int:
    """Return how many queries make a block: enough blocks to share, but few to start."""
    return max(FEWEST_QUERIES, -(-n_queries // MOST_BLOCKS))


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
    sessions = Sessions(
        world,
        browse,
        eta,
        arrivals=np.uint64(streams.child(key, streams.ARRIVALS)),
        users=np.uint64(streams.child(key, streams.USERS)),
        ranker=np.uint64(streams.child(key, streams.RANKER)),
        plan=plan,
        ndcg=served,
    )
    tallies = map_blocks(
        model.run_sessions(sessions),
        total=len(world.entered),
        block=block_size(len(world.entered)),
        threads=threads,
    )
    return served, np.add.reduce(tallies)
