"""Sessions of rankers that sort by a formula: nearly all of them.

A query's candidates are scored once per phase. After a session only the items shown, and the one
that entered, have new scores, so a tournament keeps the order; they are scored before the next
session, if there is one. A noisy formula gives every candidate a new score in every session; then
one pass finds the best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebrank.kernels import streams
from ebrank.kernels.compiled import inner, kernel
from ebrank.kernels.pointers import call_at, pointer_to, prefetch
from ebrank.lab.sessions import tournament
from ebrank.lab.sessions.session import Sessions, World, items_enter, room_for_sheet, show
from ebrank.lab.sessions.tournament import Tree, insert
from ebrank.model.formula import BATCH, Score
from ebrank.model.scoring import item_state
from ebrank.typing import Floats, Ints, Keys, SmallInts

AHEAD = 24
"""How many candidates ahead to fetch state from memory."""


class Scorer(NamedTuple):
    """A model's compiled formula, by address, with its two numbers per item and its parameters."""

    formula: int
    a: Floats
    b: Floats
    parameters: Floats

    @classmethod
    def of(cls, score: Score, a: Floats, b: Floats) -> Scorer:
        """Return the scorer of a model; `score` must outlive it, since only its address is kept."""
        return cls(score.compiled.address, a, b, score.parameters)


@kernel
def run_sessions(
    sessions: Sessions, scorer: Scorer, noisy: bool, first_query: int, stop_query: int
) -> None:
    """Run the planned sessions of some queries; write each session's NDCG at its time."""
    world, plan = sessions.world, sessions.plan
    size = tournament.width(longest(world, first_query, stop_query))
    marks = np.empty(2 * size, np.int64)
    winners = np.empty(2 * size, np.int32)
    length = len(world.discounts)
    sheet, drawn, batch = room_for_sheet(length), np.empty(length), room_for_batch()
    changed = np.empty(length + longest(world, first_query, stop_query), np.int32)
    doubt = 0.0
    for q in range(first_query, stop_query):
        if plan.starts[q] == plan.starts[q + 1]:
            continue
        first = world.pointers[q]
        noise = streams.child(sessions.ranker, q)
        tree = Tree(marks, winners, tournament.width(world.pointers[q + 1] - first))
        if not noisy:
            doubt += enter_all(world, scorer, q, batch, tree)
        n = 0
        for i in range(plan.starts[q], plan.starts[q + 1]):
            for late in range(items_enter(sessions, q, plan.times[i])):
                changed[n] = world.arrivals[first + world.entered[q] - 1 - late]
                n += 1
            shown = min(length, world.entered[q])
            if noisy:
                session = streams.child(noise, world.sessions_done[q])
                doubt += write_top(world, scorer, q, session, batch, drawn, sheet.rows)
            else:
                doubt += put_rows(world, scorer, changed, n, batch, tree)
                take_top(world, tree, first, sheet.rows, shown)
            sessions.ndcg[plan.times[i]] = show(sessions, q, sheet, shown)
            # These are scored again before the next session, if there is one: often there is none.
            n = shown
            for rank in range(shown):
                changed[rank] = sheet.rows[rank]
    check(doubt)


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


class Batch(NamedTuple):
    """Scratch buffers for items scored together: their rows, random keys and scores."""

    rows: SmallInts
    keys: Keys
    scores: Floats


@kernel
def room_for_batch() -> Batch:
    """Allocate a batch."""
    return Batch(np.empty(BATCH, np.int32), np.zeros(BATCH, np.uint64), np.empty(BATCH))


@inner
def score_batch(world: World, scorer: Scorer, batch: Batch, items: int) -> float:
    """Write the scores of a batch, given the behavior so far; return NaN if one is not finite."""
    call_at(
        scorer.formula,
        (
            items,
            pointer_to(batch.rows, 0),
            *item_state(
                scorer.a,
                scorer.b,
                world.weighted_clicks,
                world.exposure,
                world.counts,
                world.table,
                scorer.parameters,
            ),
            pointer_to(batch.keys, 0),
            pointer_to(batch.scores, 0),
        ),
    )
    doubt = 0.0
    for i in range(items):
        doubt += doubt_of(batch.scores[i])
    return doubt


@inner
def enter_all(world: World, scorer: Scorer, q: int, batch: Batch, tree: Tree) -> float:
    """Start a tournament of a query's candidates; return NaN if a score is not finite."""
    marks, winners, size = tree
    first, stop = world.pointers[q], world.pointers[q + 1]
    for place in range(size):
        marks[size + place] = tournament.EMPTY
    n, doubt = 0, 0.0
    for row in range(first, stop):  # in order of memory, and without a branch
        winners[n] = row
        n += world.positions[row] < world.entered[q]
    for begin in range(0, n, BATCH):
        items = min(BATCH, n - begin)
        for i in range(items):
            batch.rows[i] = winners[begin + i]
            later = begin + i + AHEAD
            prefetch(world.counts, winners[later] if later < n else stop + later - n)
        doubt += score_batch(world, scorer, batch, items)
        for i in range(items):
            marks[size + world.leaves[batch.rows[i]]] = tournament.mark(batch.scores[i])
    tournament.build(tree)
    return doubt


@inner
def put_rows(
    world: World, scorer: Scorer, rows: SmallInts, n: int, batch: Batch, tree: Tree
) -> float:
    """Update the scores of items in the tournament; return NaN if one is not finite."""
    doubt = 0.0
    for begin in range(0, n, BATCH):
        items = min(BATCH, n - begin)
        for i in range(items):
            batch.rows[i] = rows[begin + i]
        doubt += score_batch(world, scorer, batch, items)
        for i in range(items):
            leaf, mark = world.leaves[batch.rows[i]], tournament.mark(batch.scores[i])
            tournament.put(tree, leaf, mark)
    return doubt


@inner
def take_top(world: World, tree: Tree, first: int, rows: Ints, length: int) -> None:
    """Write the best rows; all but the last leave the tournament until they are put back."""
    for rank in range(length):
        best = tree.winners[1]
        rows[rank] = world.by_leaf[first + best]
        if rank < length - 1:
            tournament.put(tree, best, tournament.EMPTY)


@inner
def write_top(
    world: World, scorer: Scorer, q: int, key: np.uint64, batch: Batch, values: Floats, rows: Ints
) -> float:
    """Score every candidate, with draws of a session's key; write the best rows and their scores.

    Returns NaN if a score is not finite, else 0.
    """
    first, stop, doubt = world.pointers[q], world.pointers[q + 1], 0.0
    seated, items = 0, 0
    for row in range(first, stop):
        batch.rows[items] = row
        batch.keys[items] = streams.child(key, row - first)
        items += world.positions[row] < world.entered[q]
        if items == BATCH or row == stop - 1:
            doubt += score_batch(world, scorer, batch, items)
            for i in range(items):
                row_, value = batch.rows[i], batch.scores[i]
                insert(world.leaves, rows, values, min(seated + i, len(rows)), row_, value)
            seated += items
            items = 0
    return doubt
