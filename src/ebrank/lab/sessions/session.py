"""What happens in one session, no matter which ranker made the list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.kernels import streams
from ebrank.kernels.compiled import inner, kernel
from ebrank.kernels.pointers import pointer_to
from ebrank.lab.sessions.world import Sessions
from ebrank.typing import Bools, Floats, Ints

NO_OUTCOME = -1.0
"""Instead of an NDCG: users did something that the experiment does not declare."""


@inner
def items_enter(sessions: Sessions, q: int, time: int) -> int:
    """Let masked items in before this session of query q, and return how many.

    They are the last of the first `entered[q]` arrivals. Where each document belongs to one query,
    it is one with probability η, or none. Items of a catalog enter when they are due; `time` is the
    session's place in its plan.
    """
    world, key, eta = sessions.world, sessions.arrivals, sessions.eta
    first, n = world.pointers[q], world.pointers[q + 1] - world.pointers[q]
    m, s = world.entered[q], world.sessions_done[q]
    if m >= n:
        return 0
    if len(world.due) > 0:
        came = 0
        while m + came < n and world.due[first + m + came] <= sessions.begin + time:
            world.entered_at[world.arrivals[first + m + came]] = s
            came += 1
        world.entered[q] = m + came
        return came
    if eta < 1.0 and streams.uniform(streams.child(streams.child(key, q), n + s)) >= eta:
        return 0
    world.entered_at[world.arrivals[first + m]] = s
    world.entered[q] = m + 1
    return 1


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
def show(sessions: Sessions, q: int, sheet: Sheet, length: int) -> float:
    """Show the first `length` rows to the next user of query q; return the list's NDCG.

    Writes what was clicked, and adds to the counts and to the query's NDCG by labels. Returns
    NO_OUTCOME if users did something that is not a behavior.
    """
    world = sessions.world
    first, s = world.pointers[q], world.sessions_done[q]
    user = streams.child(streams.child(sessions.users, q), s)
    dcg, late_dcg, label_dcg = 0.0, 0.0, 0.0
    for rank in range(length):
        row = sheet.rows[rank]
        grade = world.grades[row]
        sheet.relevance[rank] = world.click[grade]
        sheet.stopping[rank] = world.stop[grade]
        dcg += world.relevance[row] * world.discounts[rank]
        late_dcg += (world.entered_at[row] >= 0) * world.relevance[row] * world.discounts[rank]
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
        examined = world.table[slot]  # 0 where nobody is assumed to look
        worth = clicked * world.table[(1 + behaviors + behavior) * slots + slot]
        world.exposure[row] += world.table[slots + slot]
        world.weighted_clicks[row] += worth
        sheet.clicked[rank] = clicked and examined > 0
        if world.first_shown[row] < 0 and examined > 0:
            world.first_shown[row] = s
    world.sessions_done[q] = s + 1
    world.late_dcg[q] += late_dcg
    world.label_ndcg[q] += _share(label_dcg, world.ideal_gain[q])
    return _share(dcg, world.ideal[q]) if declared else NO_OUTCOME


@inner
def _share(dcg: float, ideal: float) -> float:
    """Return NDCG; if nothing is relevant, any list scores 1."""
    return dcg / ideal if ideal > 0.0 else 1.0
