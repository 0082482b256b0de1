"""The schedule of a phase: its sessions in time order, and grouped by query.

A phase is the sessions between two model updates. In it only behavior statistics change, and those
are per query. So running its sessions grouped by query, each query's in order, gives exactly what
running them in time order gives, while a query's state stays in cache and queries run in parallel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebrank.kernels import streams
from ebrank.lab.sessions.world import Schedule
from ebrank.typing import Floats, Ints


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
