"""What happens in a session, whichever ranker made the list, and the state that it changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.kernels import streams
from ebrank.kernels.compiled import inner, kernel
from ebrank.kernels.pointers import pointer_to
from ebrank.typing import Bools, Compiled, Floats, Ints, SmallInts

NO_OUTCOME = -1.0
"""Instead of an NDCG: users did something that the experiment does not declare."""


class World(NamedTuple):
    """Everything a session reads and writes. Rows are items; `arrivals` puts them in order.

    Query q owns the rows pointers[q] to pointers[q + 1]. `arrivals` holds these rows in the order
    in which they enter, so that the candidates are its first `entered[q]`; `positions` is the place
    of a row in that order. `entered_at` is the session of its query in which an item entered, −1
    for initial candidates; `first_shown` that of its first impression, −1 before. `leaves` numbers
    a query's rows in a random order, `by_leaf` holds them in that order: of equal scores, the lower
    leaf comes first. `click` and `stop` are the users' habits by grade, clicks at the config's
    rate; `relevance` is R, the truth that lists are measured by. `gain` by grade, `ideal_gain` and
    `label_ndcg` measure the same lists by labels alone; the last is the sum over a query's lists.
    `late_dcg` is the sum of what items that entered add to the DCG of a query's lists. If queries
    share the items of a catalog, `due` holds the session of the run from which each of `arrivals`
    is there, −1 for initial candidates; otherwise it is empty.

    The numbers that change when an item is shown are adjacent in memory: `counts` (see
    `BehaviorStats`), their value under the assumed curve, C and E, in units of 2⁻³⁰, `entered_at`
    and `first_shown`. For lists of five that is one cache line per item.
    """

    pointers: Ints
    arrivals: SmallInts
    due: Ints
    positions: SmallInts
    leaves: SmallInts
    by_leaf: SmallInts
    relevance: Floats
    grades: npt.NDArray[np.int8]
    click: Floats
    stop: Floats
    ideal: Floats
    gain: Floats
    ideal_gain: Floats
    label_ndcg: Floats
    late_dcg: Floats
    entered: Ints
    entered_at: SmallInts
    sessions_done: Ints
    first_shown: SmallInts
    counts: SmallInts
    weighted_clicks: Ints
    exposure: Ints
    user_curve: Floats
    slots: Ints
    table: Ints
    discounts: Floats


class Schedule(NamedTuple):
    """Sessions grouped by query: those of query q are times[starts[q] : starts[q + 1]]."""

    starts: Ints
    times: Ints


class Sessions(NamedTuple):
    """Sessions to run with one model.

    Attributes:
        world: the state that they read and change.
        browse: how users go through a list, compiled.
        eta: probability that an item enters.
        begin: session of the run with which the plan begins; negative before the run.
        arrivals, users, ranker: keys of the random draws for each purpose.
        plan: which query is asked when.
        ndcg: where each session writes its NDCG, in order of time.
    """

    world: World
    browse: Compiled
    eta: float
    begin: int
    arrivals: np.uint64
    users: np.uint64
    ranker: np.uint64
    plan: Schedule
    ndcg: Floats


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
