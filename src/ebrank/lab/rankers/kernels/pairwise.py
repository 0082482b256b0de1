"""Sessions of PDGD (Oosterhuis and de Rijke 2018): lists drawn from the softmax of scores.

A list R of items is drawn without replacement from the softmax of the scores f. A clicked item d is
preferred to every item e that was passed over: not clicked, and no further down than the first
place below the last click. Its pair adds

    ρ · e^{f_d} e^{f_e} / (e^{f_d} + e^{f_e})² · (∇f_d − ∇f_e),    ρ = P(R*)/(P(R) + P(R*)),

where R* is R with the two items swapped and P the probability of drawing a list. ρ removes the bias
of comparing items that the ranker itself ordered. All sums of exponentials are kept as logarithms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ebrank.evidence.sums import number
from ebrank.kernels import streams
from ebrank.kernels.compiled import inner, kernel
from ebrank.lab.rankers.pdgd import Pairs
from ebrank.lab.sessions.linear import LoggingModel, Seats, room_for, seat, seat_all, write_best
from ebrank.lab.sessions.scored import longest
from ebrank.lab.sessions.session import Sessions, Sheet, World, items_enter, room_for_sheet, show
from ebrank.typing import Bools, Features, Floats, Ints


class Drawn(NamedTuple):
    """Scratch buffers for one list: draws of all candidates; items, scores and so on by rank."""

    draws: Floats
    slots: Ints
    scores: Floats
    tails: Floats


@kernel
def run_sessions(
    sessions: Sessions, linear: LoggingModel, log: Pairs, first_query: int, stop_query: int
) -> None:
    """Run planned sessions of some queries; write each session's NDCG and lesson at its time."""
    world, plan = sessions.world, sessions.plan
    most, length = longest(world, first_query, stop_query), len(world.discounts)
    candidates, drawn, sheet = room_for(most), room_for_list(most, length), room_for_sheet(length)
    examination = np.empty(length)
    for rank in range(length):
        examination[rank] = number(world.table[world.counts.shape[2] + world.slots[rank]])
    for q in range(first_query, stop_query):
        first = world.pointers[q]
        seat_all(world, linear, q, candidates)
        for i in range(plan.starts[q], plan.starts[q + 1]):
            for late in range(items_enter(sessions, q, plan.times[i])):
                seat(world, linear, q, world.entered[q] - 1 - late, candidates)
            session = streams.child(streams.child(sessions.ranker, q), world.sessions_done[q])
            shown = min(length, world.entered[q])
            draw_list(world, q, candidates, session, shown, drawn)
            for rank in range(shown):
                sheet.rows[rank] = world.arrivals[first + drawn.slots[rank]]
            t = plan.times[i]
            sessions.ndcg[t] = show(sessions, q, sheet, shown)
            log.stepped[t] = linear.learns[q] and learn(
                examination, candidates, world.entered[q], shown, drawn, sheet, t, log
            )
            for rank in range(shown):
                seat(world, linear, q, drawn.slots[rank], candidates)


@kernel
def room_for_list(most: int, length: int) -> Drawn:
    """Allocate the buffers for a list of this length and this many candidates."""
    return Drawn(
        draws=np.empty(most),
        slots=np.empty(length, np.int64),
        scores=np.empty(length),
        tails=np.empty(length + 1),
    )


@inner
def draw_list(
    world: World, q: int, candidates: Seats, session: np.uint64, shown: int, drawn: Drawn
) -> None:
    """Draw a list of candidates without replacement from the softmax of their scores.

    The highest sums of score and Gumbel number are such a draw.
    """
    first, n = world.pointers[q], world.entered[q]
    for i in range(n):
        item = world.arrivals[first + i] - first
        drawn.draws[i] = candidates.scores[i] + streams.gumbel(streams.child(session, item))
    write_best(drawn.draws, candidates.ties, n, drawn.slots, drawn.scores)
    for rank in range(shown):
        drawn.scores[rank] = candidates.scores[drawn.slots[rank]]


@inner
def learn(
    examination: Floats,
    candidates: Seats,
    n: int,
    shown: int,
    drawn: Drawn,
    sheet: Sheet,
    t: int,
    log: Pairs,
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
def log_unlisted(candidates: Seats, n: int, shown: int, drawn: Drawn) -> float:
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


# --- the gradient --------------------------------------------------------------------------------


@inner
def log_add(x: float, y: float) -> float:
    """Return log(eˣ + eʸ); −∞ is an empty sum."""
    high, low = max(x, y), min(x, y)
    if low == -np.inf:
        return high
    return high + float(np.log1p(np.exp(low - high)))


@inner
def sigmoid(x: float) -> float:
    """Return 1/(1 + e⁻ˣ) for any x."""
    z = float(np.exp(-abs(x)))
    return 1.0 / (1.0 + z) if x >= 0.0 else z / (1.0 + z)


@inner
def write_log_tails(scores: Floats, length: int, log_rest: float, tails: Floats) -> None:
    """Write at each rank the log of Σ e^f over the items that could still be drawn there.

    `scores` are those of the list; `log_rest` is the log of Σ e^f over the items not in it.
    """
    tails[length] = log_rest
    for rank in range(length - 1, -1, -1):
        tails[rank] = log_add(tails[rank + 1], scores[rank])


@inner
def swap_weight(scores: Floats, tails: Floats, i: int, j: int) -> float:
    """Return ρ = P(R*)/(P(R) + P(R*)) for the swap of ranks i < j.

    Both lists draw the same items, so they differ only in what could still be drawn below rank i:
    there R* can still draw the item of rank i, but no longer that of rank j.
    """
    log_ratio = 0.0
    swapped = log_add(tails[j + 1], scores[i])
    for rank in range(j, i, -1):
        if rank < j:
            swapped = log_add(swapped, scores[rank])
        log_ratio += tails[rank] - swapped
    return sigmoid(log_ratio)


@inner
def considered(clicked: Bools, length: int) -> int:
    """Return how many items from the top were examined: down to one below the last click."""
    for rank in range(length - 1, -1, -1):
        if clicked[rank]:
            return min(rank + 2, length)
    return 0


@inner
def write_item_weights(
    scores: Floats, tails: Floats, examination: Floats, clicked: Bools, length: int, weights: Floats
) -> bool:
    """Write the factor of each listed item's ∇f in the gradient; return whether there is a pair.

    An item at a rank that nobody examines was not passed over.
    """
    any_pair = False
    for rank in range(length):
        weights[rank] = 0.0
    looked_at = considered(clicked, length)
    for better in range(looked_at):
        if not clicked[better]:
            continue
        for worse in range(looked_at):
            if clicked[worse] or examination[worse] == 0.0:
                continue
            lead = sigmoid(scores[better] - scores[worse])
            slope = lead * sigmoid(scores[worse] - scores[better])
            rho = swap_weight(scores, tails, min(better, worse), max(better, worse))
            weights[better] += rho * slope
            weights[worse] -= rho * slope
            any_pair = True
    return any_pair


@kernel
def gradient_sum(
    features: Features, log: Pairs, rates: Floats, n: int, start: int, stop: int
) -> Floats:
    """Return Σ_t rate_t Σ_d weight_d · x_d over the sessions start..stop; x^b is the last of n."""
    n_features = features.shape[1]
    total = np.zeros(n)
    for t in range(start, stop):
        if rates[t] == 0.0:
            continue
        for rank in range(log.rows.shape[1]):
            factor = rates[t] * log.weights[t, rank]
            if factor != 0.0:
                row = log.rows[t, rank]
                for j in range(n_features):
                    total[j] += factor * features[row, j]
                if n > n_features:
                    total[n_features] += factor * log.behavior[t, rank]
    return total
