"""What happens in one session, whichever ranker made the list."""

from __future__ import annotations

import numpy as np

from ebrank import streams
from ebrank.compiled import inner
from ebrank.simulation.world import AGES, Compiled, World
from ebrank.typing import Bools, Floats, Ints

_BUCKETS = np.array([1 + age.bit_length() for age in range(2 ** (AGES - 3) + 1)], np.int8)
"""Bucket by age: 0, 1, 2–3, 4–7, ... sessions; the last holds all that are older."""


@inner
def item_enters(world: World, key: np.uint64, q: int, eta: float) -> bool:
    """Return whether a masked item enters before this session of query q, and let it in.

    `key` is that of the arrivals stream. The item is the last of the first `entered[q]` arrivals.
    """
    first, n = world.pointers[q], world.pointers[q + 1] - world.pointers[q]
    m, s = world.entered[q], world.sessions_done[q]
    if m >= n:
        return False
    if eta < 1.0 and streams.uniform(streams.child(streams.child(key, q), n + s)) >= eta:
        return False
    world.entered_at[world.arrivals[first + m]] = s
    world.entered[q] = m + 1
    return True


@inner
def show(
    world: World,
    click: Compiled,
    key: np.uint64,
    q: int,
    rows: Ints,
    length: int,
    clicked: Bools,
    seen_by_age: Floats,
    clicks_by_age: Floats,
) -> float:
    """Show the first `length` rows to the next user of query q; return the list's NDCG.

    `key` is that of the users stream. Writes what was clicked, and adds to the behavior statistics.
    """
    first, s = world.pointers[q], world.sessions_done[q]
    user = streams.child(streams.child(key, q), s)
    earlier, dcg = 0, 0.0
    for rank in range(length):
        row = rows[rank]
        relevance = world.relevance[row]
        dcg += relevance * world.discounts[rank]
        mind = streams.uniform(streams.child(user, row - first))
        clicked[rank] = click(world.user_curve[rank], relevance, earlier, mind)
        earlier += clicked[rank]
        p = world.believed_curve[rank]
        if p > 0.0:  # what is believed never to be examined was not really shown
            age = _age(world, row, s)
            seen_by_age[age] += p
            clicks_by_age[age] += clicked[rank]
            world.first_shown[row] = s if world.shown[row] == 0 else world.first_shown[row]
            world.shown[row] += 1
            world.exposure[row] += p
            world.clicks[row] += clicked[rank]  # no branch: nobody can predict clicks
            world.weighted_clicks[row] += clicked[rank] / p
    world.sessions_done[q] = s + 1
    return dcg / world.ideal[q] if world.ideal[q] > 0.0 else 1.0


@inner
def _age(world: World, row: int, s: int) -> int:
    """Return the bucket of an item's age in sessions of its query."""
    if world.entered_at[row] < 0:
        return 0
    since = s - world.entered_at[row]
    return _BUCKETS[min(since, len(_BUCKETS) - 1)]  # type: ignore[no-any-return]
