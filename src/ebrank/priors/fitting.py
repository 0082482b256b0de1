"""Fits a policy: the learner's scores, the family's shape, and how far down users look.

If the family has nothing to learn and the examination curve is given, that is one fit of the
learner. Otherwise the parts take turns, each with the others as they are: all lower the same
marginal loss. A refit starts where the last one ended, and one turn is enough.

The curve of how far down users look is the one that makes the counts likeliest, given the prior
(Berndt, Hall, Hall and Hausman's steps; expectation maximization leads to the same place, slowly).
The level of all scores moves along, because it is most easily mistaken for p. Everything is
relative to the first rank that users look at, whose p stays as configured. Items seen at different
ranks tell p from R. Where they do not, the configured curve stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.slots import DEEPEST, ranks_of
from ebrank.evidence.valuation import SMALLEST_P, UNIT, Valuation
from ebrank.priors.base import State
from ebrank.priors.rows import Rows
from ebrank.threads import one_blas_thread
from ebrank.typing import Features, Floats, Ints

if TYPE_CHECKING:
    from ebrank.policy import Policy

Table: TypeAlias = tuple[Features, BehaviorStats]

FIRST_TURNS = 4
STEPS = 10
"""The most steps towards the best curve in a turn."""
SETTLED = 1e-3
"""The steps end when no probability moves by more than this."""
LARGEST_STEP = 0.2
PSEUDO_IMPRESSIONS = 4.0
"""The belief about a rank counts as this many impressions with known examination.

That is a standard deviation of a quarter. With fifty, 24,000 impressions did not undo a mistake.
"""
HIGHEST = 0.999
"""The highest probability of a rank other than the first."""
MOST_ROWS = 65_536
WIDEST = 0.5
"""The log reveals a rank's probability if its standard error is below this part of it ..."""
FEWEST = 50.0
"""... and its support is at least this."""
FEWEST_ROWS = 100
"""Fewer query-item pairs say nothing about a curve: standard errors would be far too small."""


def fit(
    policy: Policy,
    training: Table,
    validation: Table | None,
    examination: Examination,
    start: State | None,
    threads: int | None,
) -> State:
    """Return what the policy learns from rows of features and what users did."""
    state: State = {} if start is None else start
    turns = 1
    if start is None and policy.takes_turns:
        turns = FIRST_TURNS
    with one_blas_thread:
        for _ in range(turns):
            state = _turn(policy, training, validation, examination, state, threads)
    return state


def _turn(
    policy: Policy,
    training: Table,
    validation: Table | None,
    examination: Examination,
    state: State,
    threads: int | None,
) -> State:
    """Return the state after each part has been fitted once."""
    curve = policy.curve(state, examination)
    rows = policy.rows(*training, curve, threads, state)
    unseen = None
    if validation is not None:
        unseen = policy.rows(*validation, curve, threads, state)
    learner = policy.learner
    scored = learner.fit(rows, unseen, policy.learner_state(state))
    others = {name: values for name, values in state.items() if name in policy.other_arrays}
    if not policy.takes_turns or rows.count == 0:
        return {**scored, **others}
    scores = learner.scores(scored, rows.features, threads)
    beside = None
    if unseen is not None:
        beside = unseen, learner.scores(scored, unseen.features, threads)
    others |= policy.family.fit(rows, scores, beside, others)
    if policy.learns_examination:
        own = policy.with_state(rows, training[1].valuation(curve), others)
        others |= examined(policy, own, scores, training[1], examination, others)
    return {**scored, **others}


def examined(
    policy: Policy,
    rows: Rows,
    scores: Floats,
    behavior: BehaviorStats,
    configured: Examination,
    state: Mapping[str, Floats],
) -> State:
    """Return the probability that each slot is examined, its standard error, and its support.

    The support is the impressions at the slot, those of each row times the share of its impressions
    at other slots. If nothing is known, the error is 1.
    """
    from ebrank.priors.families import shape_fit  # Numba takes a while to import

    chosen = shape_fit.sample(rows, MOST_ROWS)
    believed = np.array(behavior.valuation(configured).exposure * UNIT, np.float64)
    first = int(np.argmax(believed > 0.0))
    free = np.flatnonzero(believed > 0.0)
    free = free[free != first]
    p = believed.copy()
    last = state.get("examination", p)
    p[: len(last)] = last[: len(p)]
    p[first] = believed[first]
    level = 0.0
    support, information = np.zeros(rows.slots), np.zeros((rows.slots + 1, rows.slots + 1))
    for _ in range(STEPS):
        p[free] = np.clip(p[free], SMALLEST_P, HIGHEST)
        own = policy.with_state(rows, Valuation.by_slot(p, behavior.behaviors), state)
        support, slopes, information = shape_fit.examined(own, scores + level, chosen)
        moves = _step(slopes, information, p, believed, free)
        p, level = p + moves[:-1], level + moves[-1]
        if np.abs(moves).max() < SETTLED:
            break
    p[free] = np.clip(p[free], SMALLEST_P, HIGHEST)
    scale = rows.count / len(chosen)
    error, support = _errors(information * scale, first), support * scale
    if rows.count < FEWEST_ROWS:
        error[free] = 1.0
    sure = (error <= WIDEST * p) & (support >= FEWEST)
    sure[first] = True
    return {
        "examination": np.where(sure, p, believed),
        "examination_error": error,
        "examination_support": support,
    }


def _step(slopes: Floats, information: Floats, p: Floats, believed: Floats, free: Ints) -> Floats:
    """Return how far to move p of each free slot, and the level of scores.

    Berndt, Hall, Hall and Hausman's step: like Newton's, with the outer products of slopes as the
    curvature. Pseudo-impressions pull towards the belief.
    """
    moves = np.zeros(len(p) + 1)
    chosen = np.append(free, len(p))
    if len(free):
        weight = PSEUDO_IMPRESSIONS / (p[free] * (1.0 - p[free]))
        slope = slopes[chosen] + np.append(weight * (believed[free] - p[free]), 0.0)
        bend = information[np.ix_(chosen, chosen)] + np.diag(np.append(weight, 1.0))
        moves[chosen] = np.clip(np.linalg.solve(bend, slope), -LARGEST_STEP, LARGEST_STEP)
    return moves


def _errors(information: Floats, first: int) -> Floats:
    """Return standard errors; that of the first slot is 0, since the others are relative to it.

    If nothing is known the error is 1, the most that a probability can be wrong by.
    """
    errors = np.ones(len(information))
    errors[first] = 0.0
    known = np.flatnonzero(np.diagonal(information) > 0.0)
    known = known[known != first]
    if len(known):
        part = information[np.ix_(known, known)]
        covariance = np.linalg.pinv(part, hermitian=True)
        errors[known] = np.minimum(np.sqrt(np.maximum(np.diagonal(covariance), 0.0)), 1.0)
    return errors[:-1]


def by_slot(p: Floats, configured: Examination) -> Examination:
    """Return the curve with these probabilities of slots, the same for all ranks of a slot.

    Ranks beyond these slots are examined as configured.
    """
    ranks = [len(ranks_of(slot)) for slot in range(len(p))]
    beyond = configured(np.arange(sum(ranks), DEEPEST) + 1)
    return Examination(curve=tuple(np.append(np.repeat(p, ranks), beyond).tolist()))
