"""Sessions of TopRank: blocks of items, each in a random order, compared after every list."""

from __future__ import annotations

import math

import numpy as np

from ebrank.kernels import streams
from ebrank.kernels.compiled import inner, kernel
from ebrank.lab.rankers.toprank import PairCounts
from ebrank.lab.sessions.scored import longest
from ebrank.lab.sessions.session import Sessions, Sheet, World, items_enter, room_for_sheet, show
from ebrank.lab.sessions.tournament import insert
from ebrank.typing import Bools, Floats, Ints

C = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))


@kernel
def run_sessions(
    sessions: Sessions,
    pairs: PairCounts,
    delta: float,
    first_query: int,
    stop_query: int,
) -> None:
    """Run the planned sessions of some queries; write each session's NDCG at its time."""
    world, plan = sessions.world, sessions.plan
    most, length = longest(world, first_query, stop_query), len(world.discounts)
    blocks, better = np.empty(most, np.int64), np.empty(most, np.int64)
    clicked = np.zeros(most, np.bool_)
    sheet, drawn = room_for_sheet(length), np.empty(length)
    for q in range(first_query, stop_query):
        if plan.starts[q] == plan.starts[q + 1]:
            continue
        n = world.pointers[q + 1] - world.pointers[q]
        write_blocks(pairs, pairs.offsets[q], n, blocks, better)
        for i in range(plan.starts[q], plan.starts[q + 1]):
            items_enter(sessions, q, plan.times[i])
            session = streams.child(streams.child(sessions.ranker, q), world.sessions_done[q])
            shown = min(length, world.entered[q])
            draw_list(world, q, blocks, session, drawn, sheet.rows)
            t = plan.times[i]
            sessions.ndcg[t] = show(sessions, q, sheet, shown)
            if compare(world, pairs, delta, q, blocks, sheet, shown, clicked):
                write_blocks(pairs, pairs.offsets[q], n, blocks, better)


@inner
def draw_list(
    world: World,
    q: int,
    blocks: Ints,
    session: np.uint64,
    drawn: Floats,
    rows: Ints,
) -> None:
    """Write the first rows of the blocks in order, each shuffled by this session's draws."""
    first, listed = world.pointers[q], 0
    for row in range(first, world.pointers[q + 1]):
        if world.positions[row] < world.entered[q]:
            item = row - first
            value = streams.uniform(streams.child(session, item)) - blocks[item]
            insert(world.leaves, rows, drawn, min(listed, len(rows)), row, value)
            listed += 1


@inner
def compare(
    world: World,
    pairs: PairCounts,
    delta: float,
    q: int,
    blocks: Ints,
    sheet: Sheet,
    shown: int,
    clicked: Bools,
) -> bool:
    """Prefer clicked items to the rest of their block, shown or not; return whether that settles.

    `clicked` has a flag per item; all are down before and after.
    """
    first, settled = world.pointers[q], False
    for rank in range(shown):
        clicked[sheet.rows[rank] - first] = sheet.clicked[rank]
    for rank in range(shown):
        if sheet.clicked[rank]:
            item = sheet.rows[rank] - first
            for row in range(first, world.pointers[q + 1]):
                other = row - first
                rival = world.positions[row] < world.entered[q] and not clicked[other]
                if rival and blocks[other] == blocks[item]:
                    settled |= prefer(pairs, pairs.offsets[q], item, other, delta)
    for rank in range(shown):
        clicked[sheet.rows[rank] - first] = False
    return settled


@kernel
def all_blocks(pointers: Ints, pairs: PairCounts) -> Ints:
    """Return the block of each row within its query, the best being 0."""
    blocks = np.empty(pointers[-1], np.int64)
    better = np.empty(pointers[-1], np.int64)
    for q in range(len(pointers) - 1):
        n = pointers[q + 1] - pointers[q]
        write_blocks(pairs, pairs.offsets[q], n, blocks[pointers[q] : pointers[q + 1]], better)
    return blocks


@inner
def write_blocks(pairs: PairCounts, offset: int, n: int, blocks: Ints, better: Ints) -> None:
    """Write the blocks of n items; `better` is a scratch buffer of n numbers.

    A block takes the items that no remaining item beats. Mistakes may close a circle, in which
    every item has a better one: then the block takes all that are left.
    """
    for i in range(n):
        blocks[i], better[i] = -1, 0
    for i in range(n):
        for j in range(i):
            place = offset + pair(i, j)
            if pairs.trials[place] < 0:
                better[j if pairs.net[place] > 0 else i] += 1
    block, left = 0, n
    while left > 0:
        before = left
        for i in range(n):
            if blocks[i] < 0 and better[i] == 0:
                blocks[i] = block
                left -= 1
        if left == before:
            for i in range(n):
                if blocks[i] < 0:
                    blocks[i] = block
            return
        for i in range(n):
            if blocks[i] == block:
                for j in range(n):
                    if blocks[j] < 0 and is_better(pairs, offset, i, j):
                        better[j] -= 1
        block += 1


@inner
def pair(i: int, j: int) -> int:
    """Return the index of a pair i > j in its query's triangle of pairs."""
    return i * (i - 1) // 2 + j


@inner
def is_better(pairs: PairCounts, offset: int, i: int, j: int) -> bool:
    """Return whether item i is known to be better than another item j."""
    place = offset + pair(max(i, j), min(i, j))
    ahead = pairs.net[place] if i > j else -pairs.net[place]
    return bool(pairs.trials[place] < 0 and ahead > 0)


@inner
def prefer(pairs: PairCounts, offset: int, i: int, j: int, delta: float) -> bool:
    """Record that item i was clicked and item j was not; return whether that settles the pair."""
    place = offset + pair(max(i, j), min(i, j))
    if pairs.trials[place] < 0:
        return False
    pairs.trials[place] += 1
    pairs.net[place] += 1 if i > j else -1
    trials = pairs.trials[place]
    ahead = pairs.net[place] if i > j else -pairs.net[place]
    if ahead < np.sqrt(2.0 * trials * np.log(C / delta * np.sqrt(trials))):
        return False
    pairs.trials[place] = -trials
    return True
