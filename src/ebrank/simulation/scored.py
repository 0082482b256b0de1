"""Sessions of rankers that sort by a formula: nearly all of them.

A query's candidates are scored once per epoch. After a session only the items shown, and the one
that entered, have new scores, so a tournament keeps the order. A noisy formula gives every
candidate a new score in every session; then one pass finds the best.
"""

from __future__ import annotations

import numpy as np

from ebrank import streams
from ebrank.compiled import inner, kernel
from ebrank.pointers import pointer_to, prefetch
from ebrank.simulation import tournament
from ebrank.simulation.session import item_enters, room_for_sheet, show
from ebrank.simulation.world import AGES, World
from ebrank.typing import Compiled, Floats, Ints, SmallInts

AHEAD = 12
"""How many candidates ahead to fetch state from memory."""


@kernel
def run_sessions(
    world: World,
    score: Compiled,
    browse: Compiled,
    a: Floats,
    b: Floats,
    parameters: Floats,
    noisy: bool,
    eta: float,
    key: np.uint64,
    starts: Ints,
    times: Ints,
    first_query: int,
    stop_query: int,
    ndcg: Floats,
) -> tuple[Floats, Floats]:
    """Run the scheduled sessions of some queries; write each session's NDCG at its time.

    Returns exposure and clicks by age of the items.
    """
    arrivals_key = streams.child(key, streams.ARRIVALS)
    users_key = streams.child(key, streams.USERS)
    ranker_key = streams.child(key, streams.RANKER)
    size = tournament.width(longest(world, first_query, stop_query))
    marks = np.empty(2 * size, np.int64)
    winners = np.empty(2 * size, np.int32)
    length = len(world.discounts)
    sheet, drawn = room_for_sheet(length), np.empty(length)
    by_age = np.zeros(AGES), np.zeros(AGES)
    doubt = 0.0
    for q in range(first_query, stop_query):
        if starts[q] == starts[q + 1]:
            continue
        first = world.pointers[q]
        noise = streams.child(ranker_key, q)
        size = tournament.width(world.pointers[q + 1] - first)
        if not noisy:
            doubt += enter_all(world, score, a, b, parameters, q, marks, winners, size)
        for i in range(starts[q], starts[q + 1]):
            if item_enters(world, arrivals_key, q, eta) and not noisy:
                row = world.arrivals[first + world.entered[q] - 1]
                doubt += put_row(world, score, a, b, parameters, marks, winners, size, row)
            shown = min(length, world.entered[q])
            if noisy:
                session = streams.child(noise, world.sessions_done[q])
                doubt += draw_top(
                    world, score, a, b, parameters, q, session, drawn, sheet.rows, shown
                )
            else:
                take_top(world, marks, winners, size, first, sheet.rows, shown)
            ndcg[times[i]] = show(world, browse, users_key, q, sheet, shown, by_age[0], by_age[1])
            if not noisy:
                for rank in range(shown):
                    row = sheet.rows[rank]
                    doubt += put_row(world, score, a, b, parameters, marks, winners, size, row)
    check(doubt)
    return by_age


@inner
def doubt_of(score: float) -> float:
    """Return 0 for a finite number and NaN for any other: a sum of these takes no branch."""
    return score - score


@inner
def check(doubt: float) -> None:
    """Raise if some score is not finite."""
    if doubt != 0.0:
        raise FloatingPointError("a score is not a finite number")


@inner
def longest(world: World, first_query: int, stop_query: int) -> int:
    """Return the largest number of candidates among some queries."""
    most = 1
    for q in range(first_query, stop_query):
        most = max(most, world.pointers[q + 1] - world.pointers[q])
    return most


@inner
def score_of(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: Floats,
    row: int,
    key: np.uint64,
) -> float:
    """Return the score of an item, given the behavior so far."""
    return score(  # type: ignore[no-any-return]
        a[row],
        b[min(row, len(b) - 1)],
        world.weighted_clicks[row],
        world.exposure[row],
        pointer_to(world.counts, row),
        world.counts.shape[2],
        world.counts.shape[1] - 1,
        pointer_to(world.table, 0),
        pointer_to(parameters, 0),
        key,
    )


@inner
def enter_all(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: Floats,
    q: int,
    marks: Ints,
    winners: SmallInts,
    size: int,
) -> float:
    """Start a tournament of a query's candidates; return the doubt about their scores."""
    first, stop = world.pointers[q], world.pointers[q + 1]
    for place in range(size):
        marks[size + place] = tournament.EMPTY
    n, doubt = 0, 0.0
    for row in range(first, stop):  # in order of memory, and without a branch
        winners[n] = row
        n += world.positions[row] < world.entered[q]
    for i in range(n):
        prefetch(world.counts, winners[i + AHEAD] if i + AHEAD < n else stop + i + AHEAD - n)
        row = winners[i]
        value = score_of(world, score, a, b, parameters, row, np.uint64(0))
        doubt += doubt_of(value)
        marks[size + world.leaves[row]] = tournament.mark(value)
    tournament.build(marks, winners, size)
    return doubt


@inner
def put_row(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: Floats,
    marks: Ints,
    winners: SmallInts,
    size: int,
    row: int,
) -> float:
    """Put an item into the tournament with its present score; return the doubt about it."""
    value = score_of(world, score, a, b, parameters, row, np.uint64(0))
    tournament.put(marks, winners, size, world.leaves[row], tournament.mark(value))
    return doubt_of(value)


@inner
def take_top(
    world: World,
    marks: Ints,
    winners: SmallInts,
    size: int,
    first: int,
    rows: Ints,
    length: int,
) -> None:
    """Write the best rows; all but the last leave the tournament until they are put back."""
    for rank in range(length):
        best = winners[1]
        rows[rank] = world.by_leaf[first + best]
        if rank < length - 1:
            tournament.put(marks, winners, size, best, tournament.EMPTY)


@inner
def draw_top(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: Floats,
    q: int,
    session: np.uint64,
    drawn: Floats,
    rows: Ints,
    length: int,
) -> float:
    """Score every candidate with this session's draws; write the best rows and their scores.

    Returns the doubt about all the scores.
    """
    first, doubt = world.pointers[q], 0.0
    listed = 0
    for row in range(first, world.pointers[q + 1]):
        if world.positions[row] >= world.entered[q]:
            continue
        key = streams.child(session, row - first)
        value = score_of(world, score, a, b, parameters, row, key)
        doubt += doubt_of(value)
        listed = insert(world.leaves, rows, drawn, listed, row, value, length)
    return doubt


@inner
def insert(
    leaves: SmallInts,
    rows: Ints,
    values: Floats,
    listed: int,
    row: int,
    value: float,
    length: int,
) -> int:
    """Put a row into the sorted list of the best if it belongs there; return the list's length."""
    place = listed
    if listed == length:
        last = rows[length - 1]
        if values[length - 1] > value or (
            values[length - 1] == value and leaves[last] < leaves[row]
        ):
            return listed
        place = length - 1
    else:
        listed += 1
    while place > 0 and (
        value > values[place - 1]
        or (value == values[place - 1] and leaves[row] < leaves[rows[place - 1]])
    ):
        rows[place] = rows[place - 1]
        values[place] = values[place - 1]
        place -= 1
    rows[place] = row
    values[place] = value
    return listed
