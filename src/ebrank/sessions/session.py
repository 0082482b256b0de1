"""What happens in one session, no matter which ranker made the list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.evidence.sums import number
from ebrank.kernels import streams
from ebrank.kernels.compiled import inner, kernel
from ebrank.kernels.pointers import pointer_to
from ebrank.sessions.world import AGES, Sessions, World
from ebrank.typing import Bools, Floats, Ints

_BUCKETS = np.array([1 + age.bit_length() for age in range(2 ** (AGES - 3) + 1)], np.int8)
"""Bucket by age: 0, 1, 2–3, 4–7, ... sessions; the last holds all that are older."""

NO_OUTCOME = -1.0
"""Instead of an NDCG: users did something that the experiment does not declare."""


@inner
def item_enters(sessions: Sessions, q: int) -> bool:
    """Return whether a masked item enters before this session of query q, and let it in.

    The item is the last of the first `entered[q]` arrivals.
    """
    world, key, eta = sessions.world, sessions.arrivals, sessions.eta
    first, n = world.pointers[q], world.pointers[q + 1] - world.pointers[q]
    m, s = world.entered[q], world.sessions_done[q]
    if m >= n:
        return False
    if eta < 1.0 and streams.uniform(streams.child(streams.child(key, q), n + s)) >= eta:
        return False
    world.entered_at[world.arrivals[first + m]] = s
    world.entered[q] = m + 1
    return True


class Sheet(NamedTuple):
    """Scratch buffers for one list, by rank."""

    rows: Ints
    relevance: Floats
    stopping: Floats
    minds: Floats
    outcomes: npt.NDArray[np.int8]
    clicked: Bools


@kernel
def room_for_sheet(length: int) -> Sheet:
    """Allocate the buffers for lists of up to this length."""
    return Sheet(
        rows=np.empty(length, np.int64),
        relevance=np.empty(length),
        stopping=np.empty(length),
        minds=np.empty(length),
        outcomes=np.empty(length, np.int8),
        clicked=np.empty(length, np.bool_),
    )


@inner
def show(
    sessions: Sessions, q: int, sheet: Sheet, length: int, by_age: tuple[Floats, Floats]
) -> float:
    """Show the first `length` rows to the next user of query q; return the list's NDCG.

    Writes what was clicked, and adds to the counts, to exposure and clicks by age, and to the
    query's NDCG by labels. Returns NO_OUTCOME if users did something that is not a behavior.
    """
    world = sessions.world
    seen_by_age, clicks_by_age = by_age
    first, s = world.pointers[q], world.sessions_done[q]
    user = streams.child(streams.child(sessions.users, q), s)
    dcg, label_dcg = 0.0, 0.0
    for rank in range(length):
        row = sheet.rows[rank]
        grade = world.grades[row]
        sheet.relevance[rank] = world.click[grade]
        sheet.stopping[rank] = world.stop[grade]
        dcg += world.relevance[row] * world.discounts[rank]
        label_dcg += world.gain[grade] * world.discounts[rank]
        sheet.minds[rank] = streams.uniform(streams.child(user, row - first))
    sessions.browse(
        pointer_to(sheet.relevance, 0),
        pointer_to(sheet.stopping, 0),
        pointer_to(world.user_curve, 0),
        pointer_to(sheet.minds, 0),
        length,
        streams.child(user, world.pointers[q + 1] - first),
        pointer_to(sheet.outcomes, 0),
    )
    slots, behaviors = world.counts.shape[2], world.counts.shape[1] - 1
    declared = True
    for rank in range(length):
        row, slot, outcome = sheet.rows[rank], world.slots[rank], sheet.outcomes[rank]
        clicked = outcome > 0
        behavior = min(max(outcome, 1), behaviors)
        declared &= outcome == behavior * clicked
        world.counts[row, 0, slot] += 1
        world.counts[row, behavior, slot] += clicked  # no branch: nobody can predict clicks
        examined = world.table[slot]  # 0 where nobody is believed to look
        exposure = world.table[slots + slot]
        worth = clicked * world.table[(1 + behaviors + behavior) * slots + slot]
        world.exposure[row] += exposure
        world.weighted_clicks[row] += worth
        sheet.clicked[rank] = clicked and examined > 0
        age = _age(world, row, s)
        seen_by_age[age] += number(exposure)
        clicks_by_age[age] += sheet.clicked[rank]
        if world.first_shown[row] < 0 and examined > 0:
            world.first_shown[row] = s
    world.sessions_done[q] = s + 1
    world.label_ndcg[q] += _share(label_dcg, world.ideal_gain[q])
    return _share(dcg, world.ideal[q]) if declared else NO_OUTCOME


@inner
def _share(dcg: float, ideal: float) -> float:
    """Return NDCG; if nothing is relevant, any list scores 1."""
    return dcg / ideal if ideal > 0.0 else 1.0


@inner
def _age(world: World, row: int, s: int) -> int:
    """Return the bucket of an item's age in sessions of its query."""
    if world.entered_at[row] < 0:
        return 0
    since = s - world.entered_at[row]
    return _BUCKETS[min(since, len(_BUCKETS) - 1)]  # type: ignore[no-any-return]
