"""Random directions, drawn from keys: DBGD and MGD look around in them and step in the best.

A direction is a pure function of its key, so a session need only remember its key and who won; the
directions themselves are drawn again when the model steps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank import streams
from ebrank.compiled import kernel

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]

DIRECTIONS, DRAFT = 0, 1
"""Children of a session's key: what candidates are drawn from, and the order of the teams."""


@kernel
def write_direction(key: np.uint64, direction: Floats) -> None:
    """Write a point drawn uniformly from the unit sphere: normal numbers, divided by their norm.

    The normal numbers come in pairs from two uniform ones (Box and Muller).
    """
    n = len(direction)
    total = 0.0
    for pair in range((n + 1) // 2):
        radius_key = streams.child(key, 2 * pair)
        angle_key = streams.child(key, 2 * pair + 1)
        radius = np.sqrt(-2.0 * np.log(streams.open_uniform(radius_key)))
        angle = 2.0 * np.pi * streams.uniform(angle_key)
        direction[2 * pair] = radius * np.cos(angle)
        total += direction[2 * pair] ** 2
        if 2 * pair + 1 < n:
            direction[2 * pair + 1] = radius * np.sin(angle)
            total += direction[2 * pair + 1] ** 2
    norm = np.sqrt(total)
    for j in range(n):
        direction[j] /= norm


@kernel
def direction_key(session: np.uint64, candidate: int) -> np.uint64:
    """Return the key of a candidate's direction in a session."""
    return streams.child(streams.child(session, DIRECTIONS), candidate)


@kernel
def gradient_sum(
    sessions: Keys, wins: Bools, rates: Floats, n: int, start: int, stop: int
) -> Floats:
    """Return Σ_t rate_t · (mean of the winners' directions) over the sessions start..stop."""
    total = np.zeros(n)
    direction = np.empty(n)
    for t in range(start, stop):
        winners = 0
        for candidate in range(wins.shape[1]):
            winners += wins[t, candidate]
        for candidate in range(wins.shape[1]):
            if wins[t, candidate]:
                write_direction(direction_key(sessions[t], candidate), direction)
                for j in range(n):
                    total[j] += rates[t] / winners * direction[j]
    return total
