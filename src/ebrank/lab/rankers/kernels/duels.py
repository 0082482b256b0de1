"""Sessions of DBGD and MGD, which compare candidates around the logging model on one list.

A candidate is a random direction, a pure function of its key: a session remembers only its key and
who won, and the directions are drawn again when the model steps.

The lists are merged by team-draft multileaving (Schuth et al. 2014): in each round every ranker, in
a random order, adds the item it likes best among those not yet in the list. An item belongs to the
team that added it, and so do the clicks on it. With two rankers this is the team-draft interleaving
of Radlinski et al. (2008).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebrank.kernels import streams
from ebrank.kernels.compiled import inner, kernel, leaf
from ebrank.lab.rankers.dbgd import Duels
from ebrank.lab.sessions.linear import LoggingModel, Seats, room_for, seat, seat_all, write_best
from ebrank.lab.sessions.scored import longest
from ebrank.lab.sessions.session import Sessions, World, items_enter, room_for_sheet, show
from ebrank.typing import Bools, Floats, Ints

HALF, LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)
DIRECTIONS, DRAFT = 0, 1
"""Children of a session's key: what candidates are drawn from, and the order of the teams."""
NOBODY = -1


class Draft(NamedTuple):
    """Scratch buffers for one list and the rankers that make it; ranker 0 is the logging model."""

    directions: Floats
    scores: Floats
    best: Floats
    lists: Ints
    order: Ints
    slots: Ints
    teams: Ints


@kernel
def run_sessions(
    sessions: Sessions,
    linear: LoggingModel,
    step: float,
    log: Duels,
    first_query: int,
    stop_query: int,
) -> None:
    """Run planned sessions of some queries; write each session's NDCG and lesson at its time."""
    world, plan = sessions.world, sessions.plan
    most, length = longest(world, first_query, stop_query), len(world.discounts)
    candidates, draft = room_for(most), room_for_draft(linear, log.wins.shape[1], most, length)
    sheet = room_for_sheet(length)
    for q in range(first_query, stop_query):
        first = world.pointers[q]
        seat_all(world, linear, q, candidates)
        for i in range(plan.starts[q], plan.starts[q + 1]):
            for late in range(items_enter(sessions, q, plan.times[i])):
                seat(world, linear, q, world.entered[q] - 1 - late, candidates)
            session = streams.child(streams.child(sessions.ranker, q), world.sessions_done[q])
            shown = min(length, world.entered[q])
            draft_list(world, q, linear, step, candidates, session, draft)
            for rank in range(shown):
                sheet.rows[rank] = world.arrivals[first + draft.slots[rank]]
            t = plan.times[i]
            sessions.ndcg[t] = show(sessions, q, sheet, shown)
            log.keys[t] = session
            if linear.learns[q]:
                write_wins(draft.teams, sheet.clicked, shown, log.wins[t])
            for rank in range(shown):
                seat(world, linear, q, draft.slots[rank], candidates)


@kernel
def room_for_draft(linear: LoggingModel, n_rankers: int, most: int, length: int) -> Draft:
    """Allocate the buffers for a list of this length, these candidates and rankers."""
    n_weights = linear.features.shape[1] + linear.concatenated
    return Draft(
        directions=np.empty((n_rankers, n_weights)),
        scores=np.empty((n_rankers, most)),
        best=np.empty(length),
        lists=np.empty((n_rankers + 1, length), np.int64),
        order=np.empty(n_rankers + 1, np.int64),
        slots=np.empty(length, np.int64),
        teams=np.empty(length, np.int64),
    )


@inner
def draft_list(
    world: World,
    q: int,
    linear: LoggingModel,
    step: float,
    candidates: Seats,
    session: np.uint64,
    draft: Draft,
) -> None:
    """Let the logging model and the candidate rankers draft a list of a query's candidates.

    See `rankers.dbgd.DuelModel` for `step`.
    """
    n = world.entered[q]
    shown = min(len(draft.slots), n)
    for ranker in range(len(draft.directions)):
        key = direction_key(session, ranker)
        write_direction(key, draft.directions[ranker])
    write_scores(world, q, linear, step, candidates, draft)
    write_best(candidates.scores, candidates.ties, n, draft.lists[0], draft.best)
    for ranker in range(len(draft.scores)):
        write_best(draft.scores[ranker], candidates.ties, n, draft.lists[ranker + 1], draft.best)
    draft_teams(draft, shown, streams.child(session, DRAFT))


@inner
def write_scores(
    world: World, q: int, linear: LoggingModel, step: float, candidates: Seats, draft: Draft
) -> None:
    """Write the scores (w + δu)·x of every candidate ranker (rows) for every candidate item."""
    n_features = linear.features.shape[1]
    for i in range(world.entered[q]):
        row = world.arrivals[world.pointers[q] + i]
        for ranker in range(len(draft.directions)):
            ahead = 0.0
            for j in range(n_features):
                ahead += linear.features[row, j] * draft.directions[ranker, j]
            if linear.concatenated:
                ahead += candidates.behavior[i] * draft.directions[ranker, n_features]
            draft.scores[ranker, i] = candidates.scores[i] + step * ahead


# --- directions ----------------------------------------------------------------------------------


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
def gradient_sum(log: Duels, rates: Floats, n: int, start: int, stop: int) -> Floats:
    """Return Σ_t rate_t · (mean of the winners' directions) over the sessions start..stop."""
    total, direction, wins = np.zeros(n), np.empty(n), log.wins
    for t in range(start, stop):
        winners = 0
        for candidate in range(wins.shape[1]):
            winners += wins[t, candidate]
        for candidate in range(wins.shape[1]):
            if wins[t, candidate]:
                write_direction(direction_key(log.keys[t], candidate), direction)
                for j in range(n):
                    total[j] += rates[t] / winners * direction[j]
    return total


# --- teams ---------------------------------------------------------------------------------------


@inner
def draft_teams(draft: Draft, length: int, key: np.uint64) -> None:
    """Merge the rankers' lists, one in each row of `lists`, best first; write who added what.

    The first `length` items of each ranker suffice. The items that all rankers agree on from the
    top down belong to no team: clicks on them do not tell which is better. `order` is working
    space, one place for each ranker.
    """
    lists, order, merged, teams = draft.lists, draft.order, draft.slots, draft.teams
    n_rankers = len(lists)
    filled = agreed(lists, length)
    for rank in range(filled):
        merged[rank] = lists[0, rank]
        teams[rank] = NOBODY
    turn = n_rankers
    for rank in range(filled, length):
        if turn == n_rankers:
            turn = 0
            for ranker in range(n_rankers):
                order[ranker] = ranker
        # One step of a Fisher–Yates shuffle per rank: in each round, every ranker picks once.
        chosen = turn + streams.below(streams.child(key, rank), n_rankers - turn)
        order[turn], order[chosen] = order[chosen], order[turn]
        teams[rank] = order[turn]
        merged[rank] = first_new(lists[teams[rank]], merged, rank)
        turn += 1


@inner
def agreed(lists: Ints, length: int) -> int:
    """Return how many items all rankers agree on, from the top down."""
    for rank in range(length):
        for ranker in range(1, len(lists)):
            if lists[ranker, rank] != lists[0, rank]:
                return rank
    return length


@inner
def first_new(ranking: Ints, merged: Ints, filled: int) -> int:
    """Return a ranking's first item that is not among the first `filled` merged ones."""
    place = 0
    while occurrences(merged, filled, ranking[place]) > 0:
        place += 1
    return int(ranking[place])


@inner
def occurrences(items: Ints, n: int, item: int) -> int:
    """Return how often an item is among the first n."""
    count = 0
    for i in range(n):
        count += items[i] == item
    return count


@leaf
def write_wins(teams: Ints, clicked: Bools, length: int, wins: Bools) -> None:
    """Write which candidates (rankers 1, 2, ...) have more clicks than the current one, ranker 0.

    >>> wins = np.zeros(2, np.bool_)
    >>> write_wins(np.array([1, 0, 2]), np.array([True, False, False]), 3, wins)
    >>> wins
    array([ True, False])
    """
    current = team_clicks(teams, clicked, length, 0)
    for candidate in range(len(wins)):
        wins[candidate] = team_clicks(teams, clicked, length, candidate + 1) > current


@inner
def team_clicks(teams: Ints, clicked: Bools, length: int, team: int) -> int:
    """Return how many clicks fell on a team's items."""
    clicks = 0
    for rank in range(length):
        clicks += clicked[rank] and teams[rank] == team
    return clicks
