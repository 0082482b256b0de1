"""The schedule of a phase: its sessions in time order, and grouped by query.

A phase is the sessions between two model updates. In it only behavior statistics change, and those
are per query. So running its sessions grouped by query, each query's in order, gives exactly what
running them in time order gives, while a query's state stays in cache and queries run in parallel.
"""

from __future__ import annotations

import numpy as np

from ebrank.kernels import streams
from ebrank.kernels.compiled import kernel
from ebrank.sessions.world import Schedule
from ebrank.typing import Ints


@kernel
def queries_asked(key: np.uint64, first: int, stop: int, n_queries: int) -> Ints:
    """Return the query of each session; `key` is the key of the queries stream."""
    asked = np.empty(stop - first, np.int64)
    for t in range(first, stop):
        asked[t - first] = streams.below(streams.child(key, t), n_queries)
    return asked


@kernel
def group_by_query(asked: Ints, n_queries: int) -> tuple[Ints, Ints]:
    """Return the starts and times of a schedule, by a counting sort."""
    starts = np.zeros(n_queries + 1, np.int64)
    for q in asked:
        starts[q + 1] += 1
    for q in range(n_queries):
        starts[q + 1] += starts[q]
    free = starts.copy()
    times = np.empty(len(asked), np.int64)
    for t in range(len(asked)):
        times[free[asked[t]]] = t
        free[asked[t]] += 1
    return starts, times


def phase(key: np.uint64, first: int, stop: int, n_queries: int) -> tuple[Ints, Schedule]:
    """Return the queries asked in a phase, in time order and grouped."""
    asked = queries_asked(key, first, stop, n_queries)
    return asked, Schedule(*group_by_query(asked, n_queries))


def everyone(sessions: int, n_queries: int) -> Schedule:
    """Return a schedule with the same number of sessions for each query."""
    starts = np.arange(n_queries + 1) * sessions
    return Schedule(starts, np.arange(n_queries * sessions))
