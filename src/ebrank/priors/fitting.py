"""Fits a policy: the learner's scores, the family's shape, and how far down users look.

Where the family has nothing to learn and the examination curve is given, that is one fit of the
learner. Else the parts take turns, each with the others as they are: all lower the same marginal
loss. A refit begins where the last one ended, and one turn is enough.

Examination is learned by maximum likelihood, too. p_1 is 1, since only p·R can be told; the others
follow from items that were seen at different ranks. Some pseudo-impressions at the configured curve
keep it where little is known, and where the log cannot tell, it stays. The marginal likelihood
climbs by Fisher's scoring: expectation and maximization would take hundreds of steps to get there,
for whether an impression was examined is seldom known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ebrank import linalg
from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.slots import ranks_of
from ebrank.evidence.valuation import SMALLEST_P, UNIT
from ebrank.priors.base import State
from ebrank.priors.rows import Rows
from ebrank.typing import Bools, Features, Floats

if TYPE_CHECKING:
    from ebrank.policy import Policy

Table: TypeAlias = tuple[Features, BehaviorStats]

FIRST_TURNS = 4
STEPS = 10
"""Most steps of examination in a turn."""
SETTLED = 1e-3
"""The steps end when no probability moves by more than this."""
PSEUDO_IMPRESSIONS = 50.0
HIGHEST = 0.999
"""Of a rank but the first: at 1, an impression that was passed over would be proof."""
LONGEST = 0.1
"""No step moves a probability by more."""
MOST_ROWS = 65_536
WIDEST = 0.5
"""The log tells where a rank's standard error is below this part of its probability ..."""
FEWEST = 50.0
"""... and as many impressions there are of items that were seen at other ranks as well."""


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
    turns = FIRST_TURNS if start is None and policy.takes_turns else 1
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

    The support is how many impressions at the slot are of items that were seen elsewhere, too.
    """
    from ebrank.priors.families import shape_fit  # Numba takes a while to import

    chosen = shape_fit.sample(rows, MOST_ROWS)
    believed = behavior.valuation(configured).exposure * UNIT
    p = state.get("examination", np.append(believed[:1], np.minimum(believed[1:], HIGHEST)))
    free = (believed > 0.0) & (np.arange(rows.slots) > 0)
    support, information = np.zeros(rows.slots), np.zeros((rows.slots, rows.slots))
    for _ in range(STEPS):
        own = policy.with_state(rows, behavior.valuation(by_slot(p)), state)
        slope, information, support = shape_fit.examined(own, scores, chosen)
        move = _scoring_step(p, believed, free, slope, information)
        p = p + move
        if np.abs(move).max() < SETTLED:
            break
    scale = rows.count / len(chosen)
    error = _errors(information * scale)
    support = support * scale
    sure = (error <= WIDEST * p) & (support >= FEWEST)
    sure[0] = True
    return {
        "examination": np.where(sure, p, believed),
        "examination_error": error,
        "examination_support": support,
    }


def _scoring_step(
    p: Floats, believed: Floats, free: Bools, slope: Floats, information: Floats
) -> Floats:
    """Return how far the probabilities move, those that are free to: slope over information.

    Pseudo-impressions add theirs to both. No step is longer than `LONGEST`.
    """
    inside = np.where(free, p, 0.5)
    pull = PSEUDO_IMPRESSIONS * (believed - inside) / (inside * (1.0 - inside))
    bend = information + np.diag(PSEUDO_IMPRESSIONS / (inside * (1.0 - inside)))
    chosen = np.flatnonzero(free)
    move = np.zeros(len(p))
    if len(chosen):
        lower = linalg.cholesky(np.ascontiguousarray(bend[np.ix_(chosen, chosen)]))
        whole = linalg.solve_lower(lower, (slope + pull)[chosen])
        step = linalg.solve_lower_transposed(lower, whole)
        move[chosen] = np.clip(step, -LONGEST, LONGEST)
    return np.where(free, np.clip(p + move, SMALLEST_P, HIGHEST) - p, 0.0)


def _errors(information: Floats) -> Floats:
    """Return standard errors, that of the first slot 0: it is what the others are relative to.

    Where nothing is known the error is 1, as large as a probability can be wrong.
    """
    errors = np.ones(len(information))
    errors[0] = 0.0
    known = np.flatnonzero(np.diagonal(information) > 0.0)
    known = known[known > 0]
    if len(known):
        part = information[np.ix_(known, known)]
        covariance = np.linalg.pinv(part, hermitian=True)
        errors[known] = np.minimum(np.sqrt(np.maximum(np.diagonal(covariance), 0.0)), 1.0)
    return errors


def by_slot(p: Floats) -> Examination:
    """Return the curve with these probabilities of slots, the same for all ranks of a slot."""
    ranks = [len(ranks_of(slot)) for slot in range(len(p))]
    return Examination(curve=tuple(np.repeat(p, ranks).tolist()))
