"""Sessions of rankers that sort by a formula: nearly all of them.

A query's candidates are scored once per epoch. After a session only the items shown, and the one
that entered, have new scores, so a tournament keeps the order. A noisy formula gives every
candidate a new score every session; there the best are found by one pass.
"""

from __future__ import annotations

import numpy as np

from ebrank import streams
from ebrank.compiled import kernel
from ebrank.simulation import tournament
from ebrank.simulation.session import item_enters, show
from ebrank.simulation.world import AGES, Compiled, Floats, Ints, World

LARGEST_TIE = np.inf


@kernel
def run_sessions(
    world: World,
    score: Compiled,
    click: Compiled,
    a: Floats,
    b: Floats,
    parameters: tuple[float, float, float],
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
    scores = np.empty(size)
    ties = np.empty(size)
    tree = np.empty(2 * size, np.int32)
    length = len(world.discounts)
    slots = np.empty(length, np.int64)
    rows = np.empty(length, np.int64)
    clicked = np.empty(length, np.bool_)
    by_age = np.zeros(AGES), np.zeros(AGES)
    for q in range(first_query, stop_query):
        if starts[q] == starts[q + 1]:
            continue
        first = world.pointers[q]
        size = tournament.width(world.pointers[q + 1] - first)
        noise = streams.child(ranker_key, q)
        fill(world, score, a, b, parameters, q, size, scores, ties)
        if not noisy:
            tournament.build(tree, scores, ties, size)
        for i in range(starts[q], starts[q + 1]):
            if item_enters(world, arrivals_key, q, eta) and not noisy:
                slot = world.entered[q] - 1
                scores[slot] = score_of(world, score, a, b, parameters, first, slot, noise)
                ties[slot] = world.tie_keys[world.arrivals[first + slot]]
                tournament.replay(tree, scores, ties, size, slot)
            shown = min(length, world.entered[q])
            if noisy:
                session = streams.child(noise, world.sessions_done[q])
                noisy_top(world, score, a, b, parameters, q, session, scores, slots, shown)
            else:
                take_top(tree, scores, ties, size, slots, shown)
            for rank in range(shown):
                rows[rank] = world.arrivals[first + slots[rank]]
            ndcg[times[i]] = show(
                world, click, users_key, q, rows, shown, clicked, by_age[0], by_age[1]
            )
            if not noisy:
                for rank in range(shown):
                    slot = slots[rank]
                    scores[slot] = score_of(world, score, a, b, parameters, first, slot, noise)
                    tournament.replay(tree, scores, ties, size, slot)
    return by_age


@kernel
def longest(world: World, first_query: int, stop_query: int) -> int:
    """Return the largest number of candidates among some queries."""
    most = 1
    for q in range(first_query, stop_query):
        most = max(most, world.pointers[q + 1] - world.pointers[q])
    return most


@kernel
def score_of(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: tuple[float, float, float],
    first: int,
    slot: int,
    key: np.uint64,
) -> float:
    """Return the score of the candidate in a slot."""
    row = world.arrivals[first + slot]
    return score(  # type: ignore[no-any-return]
        a[row],
        b[row],
        float(world.shown[row]),
        float(world.clicks[row]),
        world.weighted_clicks[row],
        world.exposure[row],
        parameters[0],
        parameters[1],
        parameters[2],
        key,
    )


@kernel
def fill(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: tuple[float, float, float],
    q: int,
    size: int,
    scores: Floats,
    ties: Floats,
) -> None:
    """Score a query's candidates; slots without one score −∞."""
    first = world.pointers[q]
    for slot in range(world.entered[q]):
        scores[slot] = score_of(world, score, a, b, parameters, first, slot, np.uint64(0))
        ties[slot] = world.tie_keys[world.arrivals[first + slot]]
    for slot in range(world.entered[q], size):
        scores[slot] = tournament.EMPTY
        ties[slot] = LARGEST_TIE


@kernel
def take_top(
    tree: tournament.Slots, scores: Floats, ties: Floats, size: int, slots: Ints, length: int
) -> None:
    """Write the best slots; each leaves the tournament until it is scored anew."""
    for rank in range(length):
        best = tree[1]
        slots[rank] = best
        scores[best] = tournament.EMPTY
        tournament.replay(tree, scores, ties, size, best)


@kernel
def noisy_top(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: tuple[float, float, float],
    q: int,
    session: np.uint64,
    scores: Floats,
    slots: Ints,
    length: int,
) -> None:
    """Score every candidate with this session's draws and write the best slots."""
    first = world.pointers[q]
    listed = 0
    for slot in range(world.entered[q]):
        row = world.arrivals[first + slot]
        key = streams.child(session, row - first)
        scores[slot] = score_of(world, score, a, b, parameters, first, slot, key)
        place = listed
        while place > 0 and precedes(world, scores, first, slot, slots[place - 1]):
            place -= 1
        if place < length:
            listed = min(listed + 1, length)
            for later in range(listed - 1, place, -1):
                slots[later] = slots[later - 1]
            slots[place] = slot


@kernel
def precedes(world: World, scores: Floats, first: int, x: int, y: int) -> bool:
    """Return whether slot x ranks before slot y."""
    if scores[x] != scores[y]:
        return bool(scores[x] > scores[y])
    keys, rows = world.tie_keys, world.arrivals
    return bool(keys[rows[first + x]] < keys[rows[first + y]])


@kernel
def write_scores(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: tuple[float, float, float],
    cold: bool,
    queries: Ints,
    out: Floats,
) -> None:
    """Write the scores of some queries' candidates, as if nobody had seen them where `cold`.

    What has not entered scores −∞.
    """
    for q in queries:
        first = world.pointers[q]
        for slot in range(world.pointers[q + 1] - first):
            row = world.arrivals[first + slot]
            if slot >= world.entered[q]:
                out[row] = tournament.EMPTY
            elif cold:
                out[row] = score(
                    a[row], b[row], 0.0, 0.0, 0.0, 0.0, parameters[0], parameters[1], parameters[2],
                    np.uint64(0),
                )  # fmt: skip
            else:
                out[row] = score_of(world, score, a, b, parameters, first, slot, np.uint64(0))
