"""Sessions of TopRank: blocks of items, each in a random order, compared after every list."""

from __future__ import annotations

import numpy as np

from ebrank import streams
from ebrank.compiled import inner, kernel
from ebrank.rankers.kernels.blocks import prefer, write_blocks
from ebrank.rankers.toprank import PairCounts
from ebrank.simulation.schedule import Schedule
from ebrank.simulation.scored import insert, longest
from ebrank.simulation.session import Sheet, item_enters, room_for_sheet, show
from ebrank.simulation.world import AGES, World
from ebrank.typing import Bools, Compiled, Floats, Ints


@kernel
def run_sessions(
    world: World,
    pairs: PairCounts,
    delta: float,
    browse: Compiled,
    eta: float,
    key: np.uint64,
    plan: Schedule,
    first_query: int,
    stop_query: int,
    ndcg: Floats,
) -> tuple[Floats, Floats]:
    """Run the planned sessions of some queries; write each session's NDCG at its time.

    Returns exposure and clicks by age of the items.
    """
    arrivals_key = streams.child(key, streams.ARRIVALS)
    users_key = streams.child(key, streams.USERS)
    ranker_key = streams.child(key, streams.RANKER)
    most, length = longest(world, first_query, stop_query), len(world.discounts)
    blocks, better = np.empty(most, np.int64), np.empty(most, np.int64)
    clicked = np.zeros(most, np.bool_)
    sheet, drawn = room_for_sheet(length), np.empty(length)
    by_age = np.zeros(AGES), np.zeros(AGES)
    for q in range(first_query, stop_query):
        if plan.starts[q] == plan.starts[q + 1]:
            continue
        n = world.pointers[q + 1] - world.pointers[q]
        write_blocks(pairs, pairs.offsets[q], n, blocks, better)
        for i in range(plan.starts[q], plan.starts[q + 1]):
            item_enters(world, arrivals_key, q, eta)
            session = streams.child(streams.child(ranker_key, q), world.sessions_done[q])
            shown = min(length, world.entered[q])
            draw_list(world, q, blocks, session, drawn, sheet.rows)
            t = plan.times[i]
            ndcg[t] = show(world, browse, users_key, q, sheet, shown, by_age[0], by_age[1])
            if compare(world, pairs, delta, q, blocks, sheet, shown, clicked):
                write_blocks(pairs, pairs.offsets[q], n, blocks, better)
    return by_age


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
