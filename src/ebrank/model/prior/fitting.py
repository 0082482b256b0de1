"""Fits a prior: the learner's scores, the family's shape, and how far down users look.

If the family has nothing to learn and the examination curve is given, that is one fit of the
learner. Otherwise the parts take turns, each with the others as they are: all lower the same
marginal loss. A refit starts where the last one ended, and one turn is enough; when there are four
times the clicks it starts anew, because a shape that few clicks made too narrow widens slowly.

The curve of how far down users look is the one that makes the counts likeliest, given the prior
(Berndt, Hall, Hall and Hausman's steps; expectation maximization leads to the same place, slowly).
The level of all scores moves along, because it is most easily mistaken for p. Everything is
relative to the first rank that users look at, whose p stays as configured. Items seen at different
ranks tell p from R. Where they do not, the configured curve stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.valuation import UNIT, Valuation
from ebrank.kernels.threads import one_blas_thread
from ebrank.model.prior import item_effects
from ebrank.model.prior.prior import Prior
from ebrank.model.prior.rows import NO_OFFSETS, Observations, Rows, folds_of, number, surely_lower
from ebrank.parameters import declared
from ebrank.typing import Floats, Ints, State

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
LOWEST, HIGHEST = 0.01, 0.999
"""The lowest and highest probability of a rank other than the first; the lowest stands for 0."""
MOST_ROWS = 65_536
GROWTH = 4.0
"""With this many times the clicks, a fit starts anew: what few clicks say may be far off."""
WIDEST, CLOSE = 0.5, 0.05
"""The log reveals a rank's p if its standard error is below this part of p, or below this ..."""
FEWEST = 50.0
"""... and its support is at least this."""
FEWEST_ROWS = 100
"""Fewer query-item pairs reveal no curve: standard errors would be far too small."""


def fit(
    prior: Prior,
    training: Observations,
    validation: Observations | None,
    examination: Examination,
    start: State | None,
    threads: int | None,
) -> State:
    """Return what a prior learns from rows of features and what users did.

    The loss of validation rows, or of each fifth of the queries under a fit to the others, chooses
    the ridge and the trees. A first fit chooses in its last turn, when the shape is known. So does
    one whose start lacks something, such as the curve. Effects of items wait for the last turn too:
    before, they would take what the features explain.
    """
    state: State = {} if start is None else start
    clicks = training.behavior.counts[:, 1:].sum()
    if "clicks" in state and clicks > GROWTH * number(state, "clicks"):
        state = {}
    turns = 1
    if not state.keys() >= set(prior.other_arrays) - {item_effects.VARIANCE}:
        turns, state = FIRST_TURNS, {**state, "clicks": np.array([float(clicks)])}
    with one_blas_thread:
        for _ in range(turns - 1):
            state = _turn(prior, training, None, examination, state, threads, choose=False)
        return _turn(prior, training, validation, examination, state, threads, choose=True)


def held_out_losses(
    prior: Prior,
    table: Observations,
    examination: Examination,
    state: State,
    threads: int | None,
) -> Floats:
    """Return the loss of each row under a refit to the rows of other queries.

    What held-out rows have chosen, such as the ridge, stays as it is.
    """
    learner = prior.learner
    chosen = {
        p.name: number(state, p.name)
        for p in declared(type(learner))
        if p.name in state and getattr(learner, p.name) is None
    }
    prior = replace(prior, learner=replace(learner, **chosen))  # type: ignore[type-var]
    shown = table.behavior.sums(examination, threads=threads).shown > 0
    fold = folds_of(table.queries, shown)
    losses = np.full(len(shown), np.nan)
    for number_of_fold in np.unique(fold[shown]).tolist():
        held_out = shown & (fold == number_of_fold)
        refitted = fit(prior, table.part(shown & ~held_out), None, examination, state, threads)
        losses[held_out] = prior.losses(refitted, table, examination, threads, held_out)
    return losses


def _turn(
    prior: Prior,
    training: Observations,
    validation: Observations | None,
    examination: Examination,
    state: State,
    threads: int | None,
    *,
    choose: bool,
) -> State:
    """Return the state after each part has been fitted once."""
    curve = prior.curve(state, examination)
    state, factor = prior.family.begin(training.behavior.sums(curve, threads=threads), state)
    scores_so_far = prior.learner_state(state)
    if scores_so_far is not None:
        state = {**state, **prior.learner.scaled(scores_so_far, factor)}

    def rows_of(table: Observations) -> Rows:
        rows = prior.rows(table.features, table.behavior, curve, threads, state)
        elsewhere = prior.elsewhere(state, table, examination, threads)
        offsets = NO_OFFSETS if elsewhere is None else elsewhere.effect
        return replace(rows, offsets=offsets, groups=table.queries if choose else None)

    rows = rows_of(training)
    unseen = None if validation is None else rows_of(validation)
    learner = prior.learner
    scored = learner.fit(rows, unseen, prior.learner_state(state))
    besides = {name: values for name, values in state.items() if name in prior.other_arrays}
    if not prior.other_arrays or rows.count == 0:
        return {**scored, **besides}
    scores = learner.scores(scored, rows.features, threads) + rows.offsets
    besides |= prior.family.fit(rows, scores, besides)
    if prior.learns_examination:
        shaped = prior.with_state(rows, training.behavior.valuation(curve), besides)
        besides |= examined(prior, shaped, scores, training.behavior, examination, besides)
    if choose and prior.shares and training.items is not None:
        besides[item_effects.VARIANCE] = np.array(
            [_item_variance(prior, training, {**scored, **besides}, examination, threads)]
        )
    return {**scored, **besides}


def _item_variance(
    prior: Prior,
    table: Observations,
    state: State,
    examination: Examination,
    threads: int | None,
) -> float:
    """Return τ² of `item_effects` that makes the rows likeliest; 0 unless it surely helps.

    The effects of a row come from other queries, so each query is held out of its own.
    """
    from ebrank.model.prior.families import shape_fit  # Numba takes a while to import

    curve = prior.curve(state, examination)
    shown = table.behavior.sums(curve, threads=threads).shown
    chosen = shape_fit.sample(shown > prior.min_impressions, item_effects.MOST_ROWS)
    others = prior.other_messages(state, table, examination, threads, chosen)
    if not others.any():
        return 0.0
    features = np.asarray(table.features)[chosen]
    rows = prior.rows(features, table.behavior[chosen], curve, threads, state)
    scores = prior.scores(state, features, threads)

    def losses(variance: float) -> Floats:
        effect = item_effects.elsewhere(others, variance).effect
        return rows.losses_and_slopes(scores + effect)[0]

    tried = {variance: losses(variance) for variance in item_effects.VARIANCES}
    best = min(tried, key=lambda variance: float(tried[variance].mean()))
    without = rows.losses_and_slopes(scores)[0]
    return best if surely_lower(tried[best], without, table.queries[chosen]) else 0.0


def examined(
    prior: Prior,
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
    from ebrank.model.prior.families import shape_fit  # Numba takes a while to import

    chosen = shape_fit.sample(rows.included, MOST_ROWS)
    assumed = np.array(behavior.valuation(configured).exposure * UNIT, np.float64)
    first = int(np.argmax(assumed > 0.0))
    free = np.delete(np.arange(rows.slots), first)
    p = assumed.copy()
    last = state.get("examination", p)
    p[: len(last)] = last[: len(p)]
    p[first] = assumed[first]
    level = 0.0
    support, information = np.zeros(rows.slots), np.zeros((rows.slots + 1, rows.slots + 1))
    for _ in range(STEPS):
        p[free] = np.clip(p[free], LOWEST, HIGHEST)
        seen = prior.with_state(rows, Valuation.by_slot(p, behavior.behaviors), state)
        support, slopes, information = shape_fit.examined(seen, scores + level, chosen)
        moves = _step(slopes, information, p, assumed, free)
        p, level = p + moves[:-1], level + moves[-1]
        if np.abs(moves).max() < SETTLED:
            break
    p[free] = np.where(p[free] <= LOWEST, 0.0, np.minimum(p[free], HIGHEST))
    scale = rows.count / len(chosen)
    error, support = _errors(information * scale, first), support * scale
    if rows.count < FEWEST_ROWS:
        error[free] = 1.0
    sure = (error <= np.maximum(WIDEST * p, CLOSE)) & (support >= FEWEST)
    sure[first] = True
    return {
        "examination": np.where(sure, p, assumed),
        "examination_error": error,
        "examination_support": support,
    }


def _step(slopes: Floats, information: Floats, p: Floats, assumed: Floats, free: Ints) -> Floats:
    """Return how far to move p of each free slot, and the level of scores.

    Berndt, Hall, Hall and Hausman's step: like Newton's, with the outer products of slopes as the
    curvature. Pseudo-impressions pull towards the assumed curve. A slot that is at a bound and
    would leave it takes no part: it would push the others aside.
    """
    weight, slope = np.ones(len(p) + 1), slopes.copy()
    weight[free] = PSEUDO_IMPRESSIONS / (p[free] * (1.0 - p[free]))
    slope[free] += weight[free] * (assumed[free] - p[free])
    leaving = np.where(slope[free] < 0.0, p[free] <= LOWEST, p[free] >= HIGHEST)
    chosen = np.append(free[~leaving], len(p))
    bend = information[np.ix_(chosen, chosen)] + np.diag(weight[chosen])
    moves = np.zeros(len(p) + 1)
    moves[chosen] = np.clip(np.linalg.solve(bend, slope[chosen]), -LARGEST_STEP, LARGEST_STEP)
    return moves


def _errors(information: Floats, first: int) -> Floats:
    """Return standard errors; that of the first slot is 0, since the others are relative to it.

    If nothing is known the error is 1, the most that a probability can be wrong by.
    """
    errors = np.ones(len(information))
    errors[first] = 0.0
    informed = np.flatnonzero(np.diagonal(information) > 0.0)
    informed = informed[informed != first]
    if len(informed):
        part = information[np.ix_(informed, informed)]
        covariance = np.linalg.pinv(part, hermitian=True)
        errors[informed] = np.minimum(np.sqrt(np.maximum(np.diagonal(covariance), 0.0)), 1.0)
    return errors[:-1]
