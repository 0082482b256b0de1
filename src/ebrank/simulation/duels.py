"""Sessions of DBGD and MGD, which compare candidates around the logging model on one list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank import streams
from ebrank.compiled import inner, kernel
from ebrank.rankers.kernels import directions, team_draft
from ebrank.rankers.kernels.best import write_best
from ebrank.rankers.online import LoggingModel
from ebrank.simulation.linear import Candidates, room_for, seat, seat_all
from ebrank.simulation.schedule import Schedule
from ebrank.simulation.scored import longest
from ebrank.simulation.session import item_enters, room_for_sheet, show
from ebrank.simulation.world import AGES, World
from ebrank.typing import Bools, Compiled, Floats, Ints, SmallInts


class Duel(NamedTuple):
    """How rankers are compared; see `rankers.dbgd.DuelModel`."""

    step: float
    disputed_only: bool


class DuelLog(NamedTuple):
    """Where sessions write what they taught; the arrays of `rankers.dbgd.Duels`."""

    keys: npt.NDArray[np.uint64]
    wins: Bools


class Draft(NamedTuple):
    """Room for one list and the rankers that make it; ranker 0 is the logging model."""

    directions: Floats
    scores: Floats
    lists: Ints
    order: Ints
    slots: Ints
    teams: Ints


@kernel
def run_sessions(
    world: World,
    linear: LoggingModel,
    duel: Duel,
    browse: Compiled,
    eta: float,
    key: np.uint64,
    plan: Schedule,
    first_query: int,
    stop_query: int,
    ndcg: Floats,
    log: DuelLog,
) -> tuple[Floats, Floats]:
    """Run the planned sessions of some queries; write each session's NDCG and lesson at its time.

    Returns exposure and clicks by age of the items.
    """
    arrivals_key = streams.child(key, streams.ARRIVALS)
    users_key = streams.child(key, streams.USERS)
    ranker_key = streams.child(key, streams.RANKER)
    most, length = longest(world, first_query, stop_query), len(world.discounts)
    candidates, draft = room_for(most), room_for_draft(linear, log.wins.shape[1], most, length)
    sheet = room_for_sheet(length)
    by_age = np.zeros(AGES), np.zeros(AGES)
    for q in range(first_query, stop_query):
        first = world.pointers[q]
        seat_all(world, linear, q, candidates)
        for i in range(plan.starts[q], plan.starts[q + 1]):
            if item_enters(world, arrivals_key, q, eta):
                seat(world, linear, q, world.entered[q] - 1, candidates)
            session = streams.child(streams.child(ranker_key, q), world.sessions_done[q])
            shown = min(length, world.entered[q])
            draft_list(
                world.arrivals, first, world.entered[q], linear, duel, candidates, session, draft
            )
            for rank in range(shown):
                sheet.rows[rank] = world.arrivals[first + draft.slots[rank]]
            t = plan.times[i]
            ndcg[t] = show(world, browse, users_key, q, sheet, shown, by_age[0], by_age[1])
            log.keys[t] = session
            if linear.learns[q]:
                team_draft.write_wins(draft.teams, sheet.clicked, shown, log.wins[t])
            for rank in range(shown):
                seat(world, linear, q, draft.slots[rank], candidates)
    return by_age


@kernel
def room_for_draft(linear: LoggingModel, n_rankers: int, most: int, length: int) -> Draft:
    """Return room for a list of this length, candidates and rankers."""
    n_weights = linear.features.shape[1] + linear.concatenated
    return Draft(
        directions=np.empty((n_rankers, n_weights)),
        scores=np.empty((n_rankers, most)),
        lists=np.empty((n_rankers + 1, length), np.int64),
        order=np.empty(n_rankers + 1, np.int64),
        slots=np.empty(length, np.int64),
        teams=np.empty(length, np.int64),
    )


@inner
def draft_list(
    arrivals: SmallInts,
    first: int,
    n: int,
    linear: LoggingModel,
    duel: Duel,
    candidates: Candidates,
    session: np.uint64,
    draft: Draft,
) -> None:
    """Let the logging model and the candidate rankers draft a list of a query's n candidates.

    `first` is the first row of the query.
    """
    shown = min(len(draft.slots), n)
    for ranker in range(len(draft.directions)):
        key = directions.direction_key(session, ranker)
        directions.write_direction(key, draft.directions[ranker])
    write_scores(arrivals, first, n, linear, duel.step, candidates, draft)
    write_best(candidates.scores, candidates.ties, n, shown, draft.lists[0])
    for ranker in range(len(draft.scores)):
        write_best(draft.scores[ranker], candidates.ties, n, shown, draft.lists[ranker + 1])
    team_draft.draft(
        draft.lists,
        shown,
        duel.disputed_only,
        streams.child(session, directions.DRAFT),
        draft.order,
        draft.slots,
        draft.teams,
    )


@inner
def write_scores(
    arrivals: SmallInts,
    first: int,
    n: int,
    linear: LoggingModel,
    step: float,
    candidates: Candidates,
    draft: Draft,
) -> None:
    """Write the scores (w + δu)·x of every candidate ranker (rows) for every candidate item."""
    n_features = linear.features.shape[1]
    for i in range(n):
        row = arrivals[first + i]
        for ranker in range(len(draft.directions)):
            ahead = 0.0
            for j in range(n_features):
                ahead += linear.features[row, j] * draft.directions[ranker, j]
            if linear.concatenated:
                ahead += candidates.behavior[i] * draft.directions[ranker, n_features]
            draft.scores[ranker, i] = candidates.scores[i] + step * ahead
