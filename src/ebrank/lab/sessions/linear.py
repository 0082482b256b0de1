"""A query's candidates as a linear logging model sees them, kept up to date session by session.

Seats are numbered by arrival: candidate i of query q is row `arrivals[pointers[q] + i]`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebrank.evidence.sums import clicks_sum, number, shown_sum
from ebrank.kernels.compiled import inner, kernel, leaf
from ebrank.kernels.pointers import pointer_to
from ebrank.lab.sessions.session import World
from ebrank.lab.sessions.tournament import insert
from ebrank.typing import Bools, Features, Floats, Ints


class LoggingModel(NamedTuple):
    """The logging model as kernels see it.

    Attributes:
        features: x^nb of each row.
        scores: w·x^nb of each row.
        behavior_weight: w_b.
        concatenated: whether x^b is a feature.
        ips: whether x^b is C/n instead of c/E.
        learns: whether the sessions of a query teach the learning model.
    """

    features: Features
    scores: Floats
    behavior_weight: float
    concatenated: bool
    ips: bool
    learns: Bools


class Seats(NamedTuple):
    """The candidates of the current query, as the logging model sees them.

    Attributes:
        scores: w·x^nb + w_b·x^b of each, given the behavior so far.
        behavior: x^b of each; 0 where it is not a feature.
        ties: order equal scores, lower first.
    """

    scores: Floats
    behavior: Floats
    ties: Floats


@kernel
def room_for(n: int) -> Seats:
    """Allocate the buffers for n candidates."""
    return Seats(np.empty(n), np.empty(n), np.empty(n))


@inner
def seat_all(world: World, linear: LoggingModel, q: int, candidates: Seats) -> None:
    """Write the state of all candidates of a query."""
    for i in range(world.entered[q]):
        seat(world, linear, q, i, candidates)


@inner
def seat(world: World, linear: LoggingModel, q: int, i: int, candidates: Seats) -> None:
    """Write the state of candidate i, which is new or has met a user."""
    row = world.arrivals[world.pointers[q] + i]
    xb = behavior_feature(world, linear, row)
    candidates.behavior[i] = xb
    candidates.scores[i] = linear.scores[row] + linear.behavior_weight * xb
    candidates.ties[i] = world.leaves[row]


@inner
def behavior_feature(world: World, linear: LoggingModel, row: int) -> float:
    """Return x^b of an item: c/E or C/n, 0 before the item is shown."""
    if not linear.concatenated:
        return 0.0
    own, worth = pointer_to(world.counts, row), pointer_to(world.table, 0)
    slots, behaviors = world.counts.shape[2], world.counts.shape[1] - 1
    shown = shown_sum(own, slots, worth)
    if shown == 0:
        return 0.0
    if linear.ips:
        return float(number(world.weighted_clicks[row]) / shown)
    clicks = number(clicks_sum(own, slots, behaviors, worth))
    return float(clicks / number(world.exposure[row]))


@leaf
def write_best(scores: Floats, ties: Floats, n: int, best: Ints, values: Floats) -> None:
    """Write the best of the first n items, as many as fit, and their scores.

    >>> import numpy as np
    >>> best = np.zeros(2, np.int64)
    >>> write_best(np.array([0.5, 2.0, 2.0]), np.array([0.1, 0.9, 0.3]), 3, best, np.zeros(2))
    >>> best
    array([2, 1])
    """
    for item in range(n):
        insert(ties, best, values, min(item, len(best)), item, scores[item])
