"""Runs planned sessions on all cores, whatever kind of model makes the lists."""

from __future__ import annotations

import numpy as np

from ebrank.rankers.model import ScoreModel
from ebrank.simulation import scored
from ebrank.simulation.schedule import Schedule
from ebrank.simulation.world import Compiled, Floats, World
from ebrank.threads import map_blocks

QUERIES_PER_BLOCK = 64


def play(
    world: World,
    model: ScoreModel,
    plan: Schedule,
    click: Compiled,
    eta: float,
    key: np.uint64,
    threads: int | None,
) -> tuple[Floats, Floats]:
    """Return the NDCG of each session in order of time, and exposure and clicks by age."""
    served = np.empty(len(plan.times))
    tallies = map_blocks(
        lambda start, stop: scored.run_sessions(
            world,
            model.serve.compiled,
            click,
            model.a,
            model.b,
            model.serve_parameters,
            model.noisy,
            eta,
            key,
            plan.starts,
            plan.times,
            start,
            stop,
            served,
        ),
        total=len(world.entered),
        block=QUERIES_PER_BLOCK,
        threads=threads,
    )
    return served, np.add.reduce(tallies)
