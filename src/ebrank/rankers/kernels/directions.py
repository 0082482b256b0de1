"""Random directions, drawn from keys: DBGD and MGD explore them and step along the best.

A direction is a pure function of its key, so a session only remembers its key and who won; the
directions are drawn again when the model steps.
"""

from __future__ import annotations

import numpy as np

from ebrank import streams
from ebrank.compiled import inner, kernel
from ebrank.typing import Bools, Floats, Keys

HALF, LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)
DIRECTIONS, DRAFT = 0, 1
"""Children of a session's key: what candidates are drawn from, and the order of the teams."""


@inner
def write_direction(key: np.uint64, direction: Floats) -> None:
    """Write a point drawn uniformly from the unit sphere: normal numbers, divided by their norm.

    The normal numbers come in pairs from a point in the unit disk (Marsaglia's polar method), drawn
    until it is in the disk; the two halves of one random number are its coordinates.
    """
    n, counter, total = len(direction), 0, 0.0
    for j in range(0, n, 2):
        x, y, square = 0.0, 0.0, 0.0
        while square >= 1.0 or square == 0.0:
            bits = streams.child(key, counter)
            counter += 1
            x = np.float64(bits >> HALF) * 2.0**-31 - 1.0
            y = np.float64(bits & LOW_HALF) * 2.0**-31 - 1.0
            square = x * x + y * y
        stretch = np.sqrt(-2.0 * np.log(square) / square)
        direction[j] = stretch * x
        total += direction[j] * direction[j]
        if j + 1 < n:
            direction[j + 1] = stretch * y
            total += direction[j + 1] * direction[j + 1]
    scale = 1.0 / np.sqrt(total)
    for j in range(n):
        direction[j] *= scale


@inner
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
