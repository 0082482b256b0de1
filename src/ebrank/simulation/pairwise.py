"""Sessions of PDGD: lists drawn from the softmax of the logging model's scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebrank import streams
from ebrank.compiled import inner, kernel
from ebrank.evidence.sums import number
from ebrank.rankers.kernels.best import write_best
from ebrank.rankers.kernels.pairwise import considered, write_item_weights, write_log_tails
from ebrank.rankers.online import LoggingModel
from ebrank.simulation.linear import Candidates, room_for, seat, seat_all
from ebrank.simulation.schedule import Schedule
from ebrank.simulation.scored import longest
from ebrank.simulation.session import Sheet, item_enters, room_for_sheet, show
from ebrank.simulation.world import AGES, World
from ebrank.typing import Bools, Compiled, Floats, Ints, SmallInts


class PairLog(NamedTuple):
    """Where sessions write what they taught; the arrays of `rankers.pdgd.Pairs`."""

    rows: Ints
    weights: Floats
    behavior: Floats
    stepped: Bools


class Drawn(NamedTuple):
    """Room for one list: the draws of all candidates, then items, scores and so on by rank."""

    draws: Floats
    slots: Ints
    scores: Floats
    tails: Floats


@kernel
def run_sessions(
    world: World,
    linear: LoggingModel,
    browse: Compiled,
    eta: float,
    key: np.uint64,
    plan: Schedule,
    first_query: int,
    stop_query: int,
    ndcg: Floats,
    log: PairLog,
) -> tuple[Floats, Floats]:
    """Run the planned sessions of some queries; write each session's NDCG and lesson at its time.

    Returns exposure and clicks by age of the items.
    """
    arrivals_key = streams.child(key, streams.ARRIVALS)
    users_key = streams.child(key, streams.USERS)
    ranker_key = streams.child(key, streams.RANKER)
    most, length = longest(world, first_query, stop_query), len(world.discounts)
    candidates, drawn, sheet = room_for(most), room_for_list(most, length), room_for_sheet(length)
    examination = np.empty(length)
    for rank in range(length):
        examination[rank] = number(world.table[world.counts.shape[2] + world.slots[rank]])
    by_age = np.zeros(AGES), np.zeros(AGES)
    for q in range(first_query, stop_query):
        first = world.pointers[q]
        seat_all(world, linear, q, candidates)
        for i in range(plan.starts[q], plan.starts[q + 1]):
            if item_enters(world, arrivals_key, q, eta):
                seat(world, linear, q, world.entered[q] - 1, candidates)
            session = streams.child(streams.child(ranker_key, q), world.sessions_done[q])
            shown = min(length, world.entered[q])
            draw_list(world.arrivals, first, world.entered[q], candidates, session, shown, drawn)
            for rank in range(shown):
                sheet.rows[rank] = world.arrivals[first + drawn.slots[rank]]
            t = plan.times[i]
            ndcg[t] = show(world, browse, users_key, q, sheet, shown, by_age[0], by_age[1])
            log.stepped[t] = linear.learns[q] and learn(
                examination, candidates, world.entered[q], shown, drawn, sheet, t, log
            )
            for rank in range(shown):
                seat(world, linear, q, drawn.slots[rank], candidates)
    return by_age


@kernel
def room_for_list(most: int, length: int) -> Drawn:
    """Return room for a list of this length and this many candidates."""
    return Drawn(
        draws=np.empty(most),
        slots=np.empty(length, np.int64),
        scores=np.empty(length),
        tails=np.empty(length + 1),
    )


@inner
def draw_list(
    arrivals: SmallInts,
    first: int,
    n: int,
    candidates: Candidates,
    session: np.uint64,
    shown: int,
    drawn: Drawn,
) -> None:
    """Draw a list of n candidates without replacement from the softmax of their scores.

    The highest sums of score and Gumbel number are such a draw. `first` is the query's first row.
    """
    for i in range(n):
        item = arrivals[first + i] - first
        drawn.draws[i] = candidates.scores[i] + streams.gumbel(streams.child(session, item))
    write_best(drawn.draws, candidates.ties, n, shown, drawn.slots)
    for rank in range(shown):
        drawn.scores[rank] = candidates.scores[drawn.slots[rank]]


@inner
def learn(
    examination: Floats,
    candidates: Candidates,
    n: int,
    shown: int,
    drawn: Drawn,
    sheet: Sheet,
    t: int,
    log: PairLog,
) -> bool:
    """Write the lesson of a session; return whether there is one.

    Scores and x^b are from the time the list was made.
    """
    if considered(sheet.clicked, shown) == 0:
        return False
    log_rest = log_unlisted(candidates, n, shown, drawn)
    write_log_tails(drawn.scores, shown, log_rest, drawn.tails)
    for rank in range(shown):
        log.rows[t, rank] = sheet.rows[rank]
        log.behavior[t, rank] = candidates.behavior[drawn.slots[rank]]
    return write_item_weights(
        drawn.scores, drawn.tails, examination, sheet.clicked, shown, log.weights[t]
    )


@inner
def log_unlisted(candidates: Candidates, n: int, shown: int, drawn: Drawn) -> float:
    """Return log Σ e^score over the candidates that are not in the list; −∞ if all are."""
    for rank in range(shown):
        drawn.draws[drawn.slots[rank]] = -np.inf  # marks what is listed
    highest = -np.inf
    for i in range(n):
        if drawn.draws[i] > -np.inf:
            highest = max(highest, candidates.scores[i])
    if highest == -np.inf:
        return highest
    total = 0.0
    for i in range(n):
        if drawn.draws[i] > -np.inf:
            total += np.exp(candidates.scores[i] - highest)
    return highest + np.log(total)  # type: ignore[no-any-return]
