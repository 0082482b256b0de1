"""A query's candidates as a linear logging model sees them, kept up to date session by session.

Candidates are numbered by arrival: candidate i of query q is row `arrivals[pointers[q] + i]`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebrank.compiled import inner, kernel
from ebrank.evidence.sums import clicks_sum, number, shown_sum
from ebrank.pointers import pointer_to
from ebrank.rankers.online import LoggingModel
from ebrank.simulation.world import World
from ebrank.typing import Floats


class Candidates(NamedTuple):
    """The candidates of the current query.

    Attributes:
        scores: w·x^nb + w_b·x^b of each, given the behavior so far.
        behavior: x^b of each; 0 where it is not a feature.
        ties: order equal scores, lower first.
    """

    scores: Floats
    behavior: Floats
    ties: Floats


@kernel
def room_for(n: int) -> Candidates:
    """Return room for n candidates."""
    return Candidates(np.empty(n), np.empty(n), np.empty(n))


@inner
def seat_all(world: World, linear: LoggingModel, q: int, candidates: Candidates) -> None:
    """Write the state of all candidates of a query."""
    for i in range(world.entered[q]):
        seat(world, linear, q, i, candidates)


@inner
def seat(world: World, linear: LoggingModel, q: int, i: int, candidates: Candidates) -> None:
    """Write the state of candidate i, which is new or has met a user."""
    row = world.arrivals[world.pointers[q] + i]
    xb = behavior_feature(world, linear, row)
    candidates.behavior[i] = xb
    candidates.scores[i] = linear.scores[row] + linear.behavior_weight * xb
    candidates.ties[i] = world.leaves[row]


@inner
def behavior_feature(world: World, linear: LoggingModel, row: int) -> float:
    """Return x^b of an item: c/E or C/n, or the default before the item is shown."""
    if not linear.concatenated:
        return 0.0
    own, worth = pointer_to(world.counts, row), pointer_to(world.table, 0)
    slots, behaviors = world.counts.shape[2], world.counts.shape[1] - 1
    shown = shown_sum(own, slots, worth)
    if shown == 0:
        return linear.unseen
    if linear.ips:
        return float(number(world.weighted_clicks[row]) / shown)
    clicks = number(clicks_sum(own, slots, behaviors, worth))
    return float(clicks / number(world.exposure[row]))
