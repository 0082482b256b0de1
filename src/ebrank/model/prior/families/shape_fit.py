"""Fits the shape of the prior, and how far down users look, to what users did.

The shape b minimizes the mean marginal loss of the rows plus

    smoothness/2 · |Δ³b|² + size/2 · |b|²

with the learner's scores as they are. The mean product of the rows' slopes approximates the
curvature of the loss, and sets the coordinates of the descent. An even sample of rows is enough for
so few numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ebrank.evidence.sums import ItemCounts, clicks_sum, number
from ebrank.kernels.compiled import inner, kernel
from ebrank.kernels.lanes import LANES, exp_below_one, lanes_at, put_lanes, total
from ebrank.kernels.pointers import pointer_to, room
from ebrank.kernels.threads import map_blocks
from ebrank.model.prior.families.beta_exact import examination_of, passed_at
from ebrank.model.prior.families.shape_grid import (
    BASE,
    HEAD,
    RELEVANCE,
    TILT,
    mass_and_mean,
    moments,
    narrow_likelihood,
    write_posterior,
    write_prior,
)
from ebrank.model.prior.learners.minimization import descended
from ebrank.model.prior.rows import LossTask, Rows
from ebrank.typing import Bools, Floats, Ints

SIZE_PENALTY = 1e-6
MOST_ROWS = 32_768
CURVATURE_ROWS = 2048
BLOCK = 2048
FLOOR = 1e-6
"""Added to every curvature: some directions have no other."""
SMALLEST = 1e-300
"""Keeps logarithms finite far from where any optimum is."""
MAX_ITERATIONS = 60
TOLERANCE = 1e-3


def fitted(rows: Rows, scores: Floats, start: Floats, smoothness: float) -> tuple[Floats, float]:
    """Return the shape with the lowest penalized loss, and the mean variance of priors."""
    weights = weights_of(rows, scores, sample(rows.included, MOST_ROWS), start)
    base = _descended(weights, start, smoothness)
    return base, _variance(weights, base, rows)


def _variance(weights: Weights, base: Floats, rows: Rows) -> float:
    """Return the mean variance of the rows' priors, in logits."""
    _, step, first = rows.parameters[rows.learned : rows.learned + HEAD]
    u = first + step * np.arange(len(base))
    prior = weights.prior * np.exp(base - weights.base - (base - weights.base).max())
    prior /= prior.sum(axis=1)[:, None]
    return float((prior @ (u * u) - (prior @ u) ** 2).mean())


def sample(included: Bools, most: int) -> Ints:
    """Return an even sample of the included rows."""
    rows: Ints = np.flatnonzero(included)
    return rows[:: max(1, -(-len(rows) // most))]


def with_shape(rows: Rows, base: Floats) -> Rows:
    """Return the rows under another shape."""
    parameters = rows.parameters.copy()
    first = rows.learned + HEAD + BASE * len(base)
    parameters[first : first + len(base)] = base
    return replace(rows, parameters=parameters)


class Weights(NamedTuple):
    """What a shape is fitted to: weights of the nodes (columns) for each row, each adding up to 1.

    Attributes:
        base: the shape they belong to. Another one multiplies all rows in the same way.
        prior: π of each row.
        posterior: that of each row, given what users did.
        fixed: rows whose posterior is too narrow for the grid: a shape cannot move it.
    """

    base: Floats
    prior: Floats
    posterior: Floats
    fixed: Bools


def weights_of(rows: Rows, scores: Floats, chosen: Ints, base: Floats) -> Weights:
    """Return the weights of the nodes for some rows under a shape."""
    shape = len(chosen), len(base)
    weights = Weights(base, np.empty(shape), np.empty(shape), np.zeros(len(chosen), np.bool_))
    shaped = with_shape(rows, base)
    learned = shaped.parameters[shaped.learned :]
    map_blocks(
        lambda begin, end: write_weights(
            shaped.task, learned, scores, chosen, begin, end, *weights[1:]
        ),
        total=len(chosen),
        block=BLOCK,
        threads=rows.threads,
    )
    return weights


def _descended(weights: Weights, start: Floats, smoothness: float) -> Floats:
    """Return the shape with the lowest penalized loss."""
    penalty, count = _penalty(len(start), smoothness), len(weights.prior)

    def objective(base: Floats) -> tuple[float, Floats]:
        loss, slope = base_sums(*weights[1:], base - weights.base)
        pull = penalty @ base
        return loss / count + 0.5 * float(pull @ base), slope / count + pull

    bend = slope_products(weights, start) + penalty + FLOOR * np.eye(len(start))
    base, _ = descended(objective, start, bend, max_iterations=MAX_ITERATIONS, tolerance=TOLERANCE)
    return base


def slope_products(weights: Weights, base: Floats) -> Floats:
    """Return the mean product of a sample's slopes by b, which approximates the curvature."""
    few = slice(None, None, max(1, -(-len(weights.prior) // CURVATURE_ROWS)))
    factors = np.exp(base - weights.base - (base - weights.base).max())
    prior, posterior = (
        part[few] * factors / (part[few] @ factors)[:, None]
        for part in (weights.prior, weights.posterior)
    )
    slopes = prior - np.where(weights.fixed[few, None], weights.posterior[few], posterior)
    mean: Floats = np.einsum("rg,rh->gh", slopes, slopes) / len(slopes)
    return mean


def _penalty(size: int, smoothness: float) -> Floats:
    """Return the second derivative of the penalties."""
    differences = np.diff(np.eye(size), n=3, axis=0)
    whole: Floats = smoothness * differences.T @ differences + SIZE_PENALTY * np.eye(size)
    return whole


def examined(rows: Rows, scores: Floats, chosen: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the sums of `examined_sums` over some rows."""
    learned = rows.parameters[rows.learned :]
    parts = map_blocks(
        lambda begin, end: examined_sums(rows.task, learned, scores, chosen, begin, end),
        total=len(chosen),
        block=BLOCK,
        threads=rows.threads,
    )
    support, slopes, information = (np.add.reduce([part[i] for part in parts]) for i in range(3))
    return support, slopes, information


@kernel
def write_weights(
    task: LossTask,
    learned: Floats,
    scores: Floats,
    rows: Ints,
    start: int,
    stop: int,
    prior: Floats,
    posterior: Floats,
    fixed: Bools,
) -> None:
    """Write the prior and posterior weights of rows[start:stop]; see `Weights`."""
    weights, numbers = room(), pointer_to(learned, 0)
    for r in range(start, stop):
        item_counts = counts_of(task, rows[r])
        top = write_prior(scores[rows[r]], numbers, weights)
        write_shares(weights, top, prior[r])
        clicks = number(clicks_sum(*item_counts))
        place, _, _ = narrow_likelihood(clicks, item_counts, numbers)
        fixed[r] = place >= 0.0
        if place >= 0.0:
            node = int(place)
            posterior[r] = 0.0
            posterior[r, node] = 1.0 - (place - node)
            posterior[r, node + 1] = place - node
        else:
            top = write_posterior(scores[rows[r]], clicks, item_counts, numbers, weights)
            write_shares(weights, top, posterior[r])


@inner
def counts_of(task: LossTask, row: int) -> ItemCounts:
    """Return the counts of a row."""
    counts, table = pointer_to(task.evidence, row), pointer_to(task.table, 0)
    return ItemCounts(counts, task.slots, task.behaviors, table)


@inner
def write_shares(logarithms: Any, top: float, shares: Floats) -> None:  # noqa: ANN401 (a pointer)
    """Write the exponentials of some logarithms, the largest of which is `top`, as shares of 1."""
    whole = 0.0
    for g in range(0, len(shares), LANES):
        weight = exp_below_one(lanes_at(logarithms, g) - top)
        put_lanes(shares, g, weight)
        whole += total(weight)
    for g in range(len(shares)):
        shares[g] /= whole


@kernel
def base_sums(
    prior: Floats, posterior: Floats, fixed: Bools, moves: Floats
) -> tuple[float, Floats]:
    """Return how much moves of b raise the summed loss, and the slope of the loss there.

    Moves multiply the weights by e^move, and the loss of a row is the log of its prior's sum minus
    that of its posterior's. Adding a constant to all moves changes nothing.
    """
    size, furthest = len(moves), moves.max()
    factors, before, after, held = np.empty(size), np.zeros(size), np.zeros(size), np.zeros(size)
    for g in range(size):
        factors[g] = np.exp(moves[g] - furthest)
    total = 0.0
    for r in range(len(prior)):
        whole, rest = 0.0, 0.0
        for g in range(size):
            whole += prior[r, g] * factors[g]
            rest += posterior[r, g] * factors[g]
        part = 1.0 / max(whole, SMALLEST)
        total -= np.log(part)
        for g in range(size):
            before[g] += part * prior[r, g]
        if fixed[r]:
            for g in range(size):
                total -= posterior[r, g] * (moves[g] - furthest)
                held[g] += posterior[r, g]
            continue
        part = 1.0 / max(rest, SMALLEST)
        total += np.log(part)
        for g in range(size):
            after[g] += part * posterior[r, g]
    return total, factors * (before - after) - held


@kernel
def examined_sums(
    task: LossTask, learned: Floats, scores: Floats, rows: Ints, start: int, stop: int
) -> tuple[Floats, Floats, Floats]:
    """Return the sums over rows[start:stop] that examination is learned from.

    The first says for each slot how many impressions are of items that were also seen elsewhere:
    n times the rest's share of all. The second is the slope of the log likelihood by p of each
    slot, and last by the score. The third is the sum of outer products of each row's own slope.

    For an impression passed over, the slope by p is E[−R/(1 − pR)] under the posterior; for a
    click, 1/p. The slope by the score is the difference of the means of φ. A narrow posterior is at
    its peak.
    """
    size, slots = int(learned[0]), task.slots
    weights, numbers = room(), pointer_to(learned, 0)
    support, slopes, row_slopes = np.zeros(slots), np.zeros(slots + 1), np.zeros(slots + 1)
    information = np.zeros((slots + 1, slots + 1))
    tilt = HEAD + TILT * size
    for r in range(start, stop):
        item_counts = counts_of(task, rows[r])
        counts = item_counts.counts
        first = write_prior(scores[rows[r]], numbers, weights)
        mass_before, mean_before = mass_and_mean(weights, first, tilt, numbers)
        clicks = number(clicks_sum(*item_counts))
        top = write_posterior(scores[rows[r]], clicks, item_counts, numbers, weights)
        mass, mean, shown = 0.0, 0.0, 0.0
        for g in range(0, size, LANES):
            weight = exp_below_one(lanes_at(weights, g) - top)
            put_lanes(weights, g, weight)
            mass += total(weight)
            mean += total(weight * lanes_at(learned, tilt + g))
        place, _, _ = narrow_likelihood(clicks, item_counts, numbers)
        peak, spread = 0.0, 0.0
        if place >= 0.0:
            node = int(place)
            part = place - node
            mean = mass * ((1.0 - part) * learned[tilt + node] + part * learned[tilt + node + 1])
            peak, spread = moments(scores[rows[r]], item_counts, numbers)
        row_slopes[slots] = mean / mass - mean_before / mass_before
        for slot in range(slots):
            shown += counts[slot]
        for slot in range(slots):
            row_slopes[slot] = 0.0
            p = examination_of(slot, item_counts)
            if counts[slot] == 0.0 or p == 0.0:
                continue
            passed = passed_at(slot, item_counts)
            pull = 0.0  # E[R/(1 − pR)]
            if place >= 0.0:
                rest = 1.0 - p * peak
                pull = mass * (peak / rest + p * spread * spread / (rest * rest * rest))
            else:
                for g in range(size):
                    relevance = learned[HEAD + RELEVANCE * size + g]
                    pull += weights[g] * relevance / (1.0 - p * relevance)
            support[slot] += counts[slot] * (shown - counts[slot]) / shown
            row_slopes[slot] = (counts[slot] - passed) / p - passed * pull / mass
        for slot in range(slots + 1):
            slopes[slot] += row_slopes[slot]
            for other in range(slots + 1):
                information[slot, other] += row_slopes[slot] * row_slopes[other]
    return support, slopes, information
