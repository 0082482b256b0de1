"""Fits the shape of the prior, and how far down users look, to what users did.

The shape b minimizes the mean marginal loss of the rows plus

    smoothness/2 · |Δ³b|² + size/2 · |b|²

with the learner's scores as they are. The mean product of the rows' slopes is about how the loss
bends, and sets the coordinates of the descent. An even sample of rows is enough for so few numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ebrank.compiled import inner, kernel
from ebrank.evidence.sums import clicks_sum, number
from ebrank.pointers import pointer_to, room
from ebrank.priors.families.beta_exact import examination_of, passed_at
from ebrank.priors.families.shape_grid import (
    BASE,
    HEAD,
    RELEVANCE,
    TILT,
    moments,
    narrow_likelihood,
    write_posterior,
    write_prior,
)
from ebrank.priors.learners.linear import surely_lower
from ebrank.priors.learners.minimization import descended
from ebrank.priors.rows import Rows
from ebrank.special import exp_below_one
from ebrank.threads import map_blocks
from ebrank.typing import Floats, Ints

SMOOTHNESSES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SIZE_PENALTY = 1e-6
MOST_ROWS = 32_768
CURVATURE_ROWS = 2048
BLOCK = 2048
FLOOR = 1e-6
"""Added to every curvature: some directions bend by nothing else."""
MAX_ITERATIONS, TRIAL_ITERATIONS = 60, 3
TOLERANCE = 1e-3


def fitted(
    rows: Rows,
    scores: Floats,
    validation: tuple[Rows, Floats] | None,
    start: Floats,
    smoothness: float,
    given: float | None,
) -> tuple[Floats, float]:
    """Return the shape of the lowest loss, and its smoothness: the one given, or the data's choice.

    As for the ridge, a neighbor on the grid of smoothnesses is taken if the validation rows prefer
    it beyond doubt, after some steps towards its optimum.
    """
    chosen = sample(rows, MOST_ROWS)
    base = _descended(rows, scores, chosen, start, smoothness, MAX_ITERATIONS)
    if given is not None or validation is None or validation[0].count == 0:
        return base, smoothness
    unseen, unseen_scores = validation
    losses = _losses(unseen, unseen_scores, base)
    for step in (1, -1):
        other = _neighbor(smoothness, step)
        if other is None:
            continue
        moved = _descended(rows, scores, chosen, base, other, TRIAL_ITERATIONS)
        if surely_lower(_losses(unseen, unseen_scores, moved), losses):
            return moved, other
    return base, smoothness


def sample(rows: Rows, most: int) -> Ints:
    """Return an even sample of the included rows."""
    included: Ints = np.flatnonzero(rows.included)
    return included[:: max(1, -(-len(included) // most))]


def with_shape(rows: Rows, base: Floats) -> Rows:
    """Return the rows under another shape."""
    parameters = rows.parameters.copy()
    first = rows.learned + HEAD + BASE * len(base)
    parameters[first : first + len(base)] = base
    return replace(rows, parameters=parameters)


def _neighbor(smoothness: float, step: int) -> float | None:
    place = int(np.argmin(np.abs(np.log(SMOOTHNESSES) - np.log(max(smoothness, 1e-300)))))
    other = place + step
    return SMOOTHNESSES[other] if 0 <= other < len(SMOOTHNESSES) else None


def _losses(rows: Rows, scores: Floats, base: Floats) -> Floats:
    """Return the loss of each included row."""
    return with_shape(rows, base).losses_and_slopes(scores)[0][rows.included]


def _descended(
    rows: Rows,
    scores: Floats,
    chosen: Ints,
    start: Floats,
    smoothness: float,
    max_iterations: int,
) -> Floats:
    """Return the shape of the lowest penalized loss on some rows."""
    penalty = _penalty(len(start), smoothness)

    def objective(base: Floats) -> tuple[float, Floats]:
        own = with_shape(rows, base)
        sums = map_blocks(
            lambda begin, end: base_sums(*_task(own), scores, chosen, begin, end),
            total=len(chosen),
            block=BLOCK,
            threads=rows.threads,
        )
        pull = penalty @ base
        value = sum(loss for loss, _ in sums) / len(chosen) + 0.5 * float(pull @ base)
        return value, np.add.reduce([slope for _, slope in sums]) / len(chosen) + pull

    few = chosen[:: max(1, -(-len(chosen) // CURVATURE_ROWS))]
    information = slope_products(*_task(with_shape(rows, start)), scores, few) / len(few)
    bend = information + penalty + FLOOR * np.eye(len(start))
    base, _ = descended(objective, start, bend, max_iterations=max_iterations, tolerance=TOLERANCE)
    return base


def _penalty(size: int, smoothness: float) -> Floats:
    """Return the second derivative of the penalties."""
    differences = np.diff(np.eye(size), n=3, axis=0)
    whole: Floats = smoothness * differences.T @ differences + SIZE_PENALTY * np.eye(size)
    return whole


def examined(rows: Rows, scores: Floats, chosen: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the sums over some rows of what `examined_sums` says."""
    parts = map_blocks(
        lambda begin, end: examined_sums(*_task(rows), scores, chosen, begin, end),
        total=len(chosen),
        block=BLOCK,
        threads=rows.threads,
    )
    support, slopes, information = (np.add.reduce([part[i] for part in parts]) for i in range(3))
    return support, slopes, information


def _task(rows: Rows) -> tuple[Floats, Ints, int, int, Floats]:
    """Return what the kernels below take of rows."""
    return (
        rows.evidence,
        rows.table,
        rows.slots,
        rows.behaviors,
        rows.parameters[rows.learned :],
    )


@inner
def write_slopes(
    counts: Any,  # noqa: ANN401 (a pointer)
    table: Ints,
    slots: int,
    behaviors: int,
    learned: Floats,
    score: float,
    weights: Any,  # noqa: ANN401 (a pointer)
    slopes: Floats,
) -> float:
    """Write π_g − posterior_g, the slope of a row's loss by b; return the loss.

    The part of the loss that b cannot change is left out.
    """
    size, numbers, worth = int(learned[0]), pointer_to(learned, 0), pointer_to(table, 0)
    top = write_prior(score, numbers, weights)
    mass = 0.0
    for g in range(size):
        slopes[g] = exp_below_one(weights[g] - top)
        mass += slopes[g]
    for g in range(size):
        slopes[g] /= mass
    value = np.log(mass) + top
    clicks = number(clicks_sum(counts, slots, behaviors, worth))
    place, whole, _ = narrow_likelihood(clicks, counts, slots, behaviors, worth, numbers)
    if place >= 0.0:
        node = int(place)
        part = place - node
        slopes[node] -= 1.0 - part
        slopes[node + 1] -= part
        own = (1.0 - part) * weights[node] + part * weights[node + 1]
        return value - own - whole  # type: ignore[no-any-return]
    after = write_posterior(clicks, counts, slots, behaviors, worth, numbers, weights)
    mass_after = 0.0
    for g in range(size):
        weights[g] = exp_below_one(weights[g] - after)
        mass_after += weights[g]
    for g in range(size):
        slopes[g] -= weights[g] / mass_after
    return value - np.log(mass_after) - after  # type: ignore[no-any-return]


@kernel
def base_sums(
    evidence: Floats,
    table: Ints,
    slots: int,
    behaviors: int,
    learned: Floats,
    scores: Floats,
    rows: Ints,
    start: int,
    stop: int,
) -> tuple[float, Floats]:
    """Return the summed loss and its slope by b over rows[start:stop]."""
    size, weights = int(learned[0]), room()
    total, slope, own = 0.0, np.zeros(size), np.empty(size)
    for r in range(start, stop):
        counts, score = pointer_to(evidence, rows[r]), scores[rows[r]]
        total += write_slopes(counts, table, slots, behaviors, learned, score, weights, own)
        for g in range(size):
            slope[g] += own[g]
    return total, slope


@kernel
def slope_products(
    evidence: Floats,
    table: Ints,
    slots: int,
    behaviors: int,
    learned: Floats,
    scores: Floats,
    rows: Ints,
) -> Floats:
    """Return the summed outer products of the rows' slopes by b: the loss bends about like that."""
    size, weights = int(learned[0]), room()
    total, own = np.zeros((size, size)), np.empty(size)
    for row in rows:
        counts = pointer_to(evidence, row)
        write_slopes(counts, table, slots, behaviors, learned, scores[row], weights, own)
        for g in range(size):
            for h in range(size):
                total[g, h] += own[g] * own[h]
    return total


@kernel
def examined_sums(
    evidence: Floats,
    table: Ints,
    slots: int,
    behaviors: int,
    learned: Floats,
    scores: Floats,
    rows: Ints,
    start: int,
    stop: int,
) -> tuple[Floats, Floats, Floats]:
    """Return what examination is learned from, over rows[start:stop].

    The first says for each slot how many impressions are of items that were seen elsewhere as well:
    n times the rest's share of all. The second is the slope of the log likelihood by p of each
    slot, and last by the score. The third is the sum of outer products of each row's own slope.

    Of an impression passed over, the slope by p is E[−R/(1 − pR)] under the posterior; of a click,
    1/p. That by the score is the difference of the means of φ. A narrow posterior is at its peak.
    """
    size, weights, numbers = int(learned[0]), room(), pointer_to(learned, 0)
    support, slopes, own = np.zeros(slots), np.zeros(slots + 1), np.zeros(slots + 1)
    information = np.zeros((slots + 1, slots + 1))
    tilt = HEAD + TILT * size
    for r in range(start, stop):
        counts = pointer_to(evidence, rows[r])
        worth = pointer_to(table, 0)
        first = write_prior(scores[rows[r]], numbers, weights)
        mass_before, mean_before = 0.0, 0.0
        for g in range(size):
            weight = exp_below_one(weights[g] - first)
            mass_before += weight
            mean_before += weight * learned[tilt + g]
        clicks = number(clicks_sum(counts, slots, behaviors, worth))
        top = write_posterior(clicks, counts, slots, behaviors, worth, numbers, weights)
        mass, mean, shown = 0.0, 0.0, 0.0
        for g in range(size):
            weights[g] = exp_below_one(weights[g] - top)
            mass += weights[g]
            mean += weights[g] * learned[tilt + g]
        place, _, _ = narrow_likelihood(clicks, counts, slots, behaviors, worth, numbers)
        peak, spread = 0.0, 0.0
        if place >= 0.0:
            node = int(place)
            part = place - node
            mean = mass * ((1.0 - part) * learned[tilt + node] + part * learned[tilt + node + 1])
            peak, spread = moments(scores[rows[r]], counts, slots, behaviors, worth, numbers)
        own[slots] = mean / mass - mean_before / mass_before
        for slot in range(slots):
            shown += counts[slot]
        for slot in range(slots):
            own[slot] = 0.0
            p = examination_of(slot, slots, worth)
            if counts[slot] == 0.0 or p == 0.0:
                continue
            passed = passed_at(slot, counts, slots, behaviors, worth)
            pull = 0.0  # E[R/(1 − pR)]
            if place >= 0.0:
                rest = 1.0 - p * peak
                pull = mass * (peak / rest + p * spread * spread / (rest * rest * rest))
            else:
                for g in range(size):
                    relevance = learned[HEAD + RELEVANCE * size + g]
                    pull += weights[g] * relevance / (1.0 - p * relevance)
            support[slot] += counts[slot] * (shown - counts[slot]) / shown
            own[slot] = (counts[slot] - passed) / p - passed * pull / mass
        for slot in range(slots + 1):
            slopes[slot] += own[slot]
            for other in range(slots + 1):
                information[slot, other] += own[slot] * own[other]
    return support, slopes, information
