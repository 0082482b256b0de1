"""Fits the shape of the prior, and how far down users look, to what users did.

The shape b and the stretch k of φ minimize the mean marginal loss of the rows plus

    smoothness/2 · |Δ³b|² + size/2 · |b|² − log_prior(m, v)/rows + penalty · e²

with the learner's scores as they are. m and v are mean and variance of logits under the prior: the
average of all rows, that of v geometric, so that a few wide ones do not make up for many narrow
ones. The last two terms matter if clicks are few. `log_prior` keeps m and v from running away. The
last is the penalty on the learner's weights, whose effect e on logits grows with
k and with v: a shape that could widen at no cost to the ridge would end far too wide.

The mean product of the rows' slopes approximates the curvature of the loss, and sets the
coordinates of the descent. An even sample of rows is enough for so few numbers.
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
from ebrank.priors.families.beta_exact import examination_of, passed_at
from ebrank.priors.families.shape import STEEPEST, TILT_CENTER, TILTS
from ebrank.priors.families.shape_grid import (
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
from ebrank.priors.learners.minimization import descended
from ebrank.priors.rows import LossTask, Rows
from ebrank.typing import Bools, Floats, Ints

SIZE_PENALTY = 1e-6
MOST_ROWS = 32_768
CURVATURE_ROWS = 2048
BLOCK = 2048
FLOOR = 1e-6
"""Added to every curvature: some directions have no other."""
SMALLEST = 1e-300
"""Keeps logarithms finite far from where any optimum is."""
LARGEST_EXPONENT = 300.0
"""Only steps that go much too far stretch φ by more."""
UNFITTED_MEAN, UNFITTED_VARIANCE = -2.08, 1.87
"""Of logits under Beta(1, 5)."""
MEAN_SCALE = 1.5
PSEUDO_ITEMS = 16.0
MAX_ITERATIONS = 60
TOLERANCE = 1e-3


class FittedShape(NamedTuple):
    """A shape, by what φ is divided under it, and the geometric mean of the rows' variances."""

    base: Floats
    tilt: float
    variance: float


def fitted(
    rows: Rows, scores: Floats, start: Floats, tilt: float, smoothness: float, penalty: float
) -> FittedShape:
    """Return the shape with the lowest penalized loss.

    The scores were fitted to the shape `start` with φ divided by `tilt`, under this `penalty`.
    """
    chosen = sample(rows.included, MOST_ROWS)
    weights = weights_of(rows, scores, chosen, start)
    level, count = float(weights.scores.mean()), len(chosen)
    around = weights._replace(scores=weights.scores - level)
    _, step, first = rows.parameters[rows.learned : rows.learned + HEAD]
    u = first + step * np.arange(len(start))
    phi = (u - TILT_CENTER) / tilt
    rough = _roughness(len(start), smoothness)

    def objective(place: Floats) -> tuple[float, Floats]:
        base, stretch = place[:-1], place[-1]
        sums = base_sums(*around[1:], u, phi, base - start, stretch - 1.0)
        loss, mean, log_variance = sums[:3] / count
        slope, mean_slope, variance_slope = sums[3:].reshape(3, -1) / count
        variance = np.exp(log_variance)
        variance_slope *= variance
        if not TILTS[0] < variance < TILTS[1]:
            variance, variance_slope = np.clip(variance, *TILTS), np.zeros(len(place))
        prior, by_mean, by_variance = log_prior(mean, variance)
        pull, effect = rough @ base, stretch * variance / tilt
        slope -= (by_mean * mean_slope + by_variance * variance_slope) / count
        slope += 2.0 * penalty * effect * stretch / tilt * variance_slope
        slope[:-1] += pull
        slope[-1] += 2.0 * penalty * effect * variance / tilt
        value = loss - prior / count + 0.5 * float(pull @ base) + penalty * effect**2
        return float(value), slope

    bend = slope_products(around, phi) + FLOOR * np.eye(len(start) + 1)
    bend[:-1, :-1] += rough
    bend[-1, -1] += 2.0 * penalty
    place, _ = descended(
        objective, np.append(start, 1.0), bend, max_iterations=MAX_ITERATIONS, tolerance=TOLERANCE
    )
    base, stretch = place[:-1], float(np.clip(place[-1], tilt / TILTS[1], tilt / TILTS[0]))
    variance = np.exp(base_sums(*around[1:], u, phi, base - start, stretch - 1.0)[2] / count)
    return FittedShape(
        base + (1.0 - stretch) * level * phi, tilt / stretch, float(np.clip(variance, *TILTS))
    )


def log_prior(mean: float, variance: float) -> tuple[float, float, float]:
    """Return the log prior of mean and variance of logits, and its slopes by both.

    Were the variance zero, clicks would count for nothing, and few clicks cannot tell (Chung et al.
    2013). Its inverse χ² prior is as if the relevance of PSEUDO_ITEMS were known, as widely spread
    as under Beta(1, 5). The mean's Cauchy prior (Gelman et al. 2008) is about that of Beta(1, 5)
    too: a first impression that is clicked does not make all items certain to be.
    """
    away = (mean - UNFITTED_MEAN) / MEAN_SCALE
    ratio = UNFITTED_VARIANCE / variance
    return (
        -float(np.log1p(away * away) + 0.5 * PSEUDO_ITEMS * (np.log(variance) + ratio)),
        -2.0 * away / (1.0 + away * away) / MEAN_SCALE,
        -0.5 * PSEUDO_ITEMS * (1.0 - ratio) / variance,
    )


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
        scores: that of each row.
    """

    base: Floats
    prior: Floats
    posterior: Floats
    fixed: Bools
    scores: Floats


def weights_of(rows: Rows, scores: Floats, chosen: Ints, base: Floats) -> Weights:
    """Return the weights of the nodes for some rows under a shape."""
    shape = len(chosen), len(base)
    clipped = np.clip(scores[chosen], -STEEPEST, STEEPEST)
    fixed = np.zeros(len(chosen), np.bool_)
    weights = Weights(base, np.empty(shape), np.empty(shape), fixed, clipped)
    own = with_shape(rows, base)
    learned = own.parameters[own.learned :]
    map_blocks(
        lambda begin, end: write_weights(
            own.task, learned, scores, chosen, begin, end, *weights[1:4]
        ),
        total=len(chosen),
        block=BLOCK,
        threads=rows.threads,
    )
    return weights


def slope_products(weights: Weights, phi: Floats) -> Floats:
    """Return the mean product of a sample's slopes by b and the stretch: about the curvature."""
    few = slice(None, None, max(1, -(-len(weights.prior) // CURVATURE_ROWS)))
    slopes = weights.prior[few] - weights.posterior[few]
    slopes = np.column_stack([slopes, weights.scores[few] * (slopes @ phi)])
    mean: Floats = np.einsum("rg,rh->gh", slopes, slopes) / len(slopes)
    return mean


def _roughness(size: int, smoothness: float) -> Floats:
    """Return the second derivative of the penalties on b."""
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
    prior: Floats,
    posterior: Floats,
    fixed: Bools,
    scores: Floats,
    u: Floats,
    phi: Floats,
    moves: Floats,
    longer: float,
) -> Floats:
    """Return sums over rows: of the loss, mean and log variance of logits, and of their slopes.

    Moves of b and a longer φ multiply the weights of a row by e^(move + score·longer·φ). Its loss
    is the log of its prior's sum minus that of its posterior's. The slopes of each are by b, and
    last by `longer`. Adding a constant to all moves changes nothing.

    φ is even, so the factors of a row are those of the moves times a geometric progression.
    """
    size, furthest = len(moves), moves.max()
    factors, shares, held = np.empty(size), np.empty(size), np.empty(size)
    for g in range(size):
        factors[g] = np.exp(moves[g] - furthest)
    sums = np.zeros(3 + 3 * (size + 1))
    slopes = sums[3:].reshape(3, size + 1)
    middle, step = 0.5 * (phi[0] + phi[size - 1]), phi[1] - phi[0]
    steepest = LARGEST_EXPONENT / (phi[size - 1] - middle)
    for r in range(len(prior)):
        steep = min(max(scores[r] * longer, -steepest), steepest)
        factor, ratio = np.exp(steep * (phi[0] - middle)), np.exp(steep * step)
        whole, rest = 0.0, 0.0
        for g in range(size):
            own = factors[g] * factor
            factor *= ratio
            shares[g] = prior[r, g] * own
            held[g] = posterior[r, g] * own
            whole += shares[g]
            rest += held[g]
        whole, rest = max(whole, SMALLEST), max(rest, SMALLEST)
        sums[0] += np.log(whole)
        if fixed[r]:
            for g in range(size):
                held[g] = posterior[r, g]
                sums[0] -= held[g] * (moves[g] - furthest + steep * (phi[g] - middle))
            rest = 1.0
        else:
            sums[0] -= np.log(rest)
        mean, variance = 0.0, 0.0
        for g in range(size):
            shares[g] /= whole
            mean += shares[g] * u[g]
        for g in range(size):
            variance += shares[g] * (u[g] - mean) * (u[g] - mean)
        variance = max(variance, SMALLEST)
        sums[1] += mean
        sums[2] += np.log(variance)
        for g in range(size):
            away = u[g] - mean
            own = shares[g] - held[g] / rest
            slopes[0, g] += own
            slopes[0, size] += own * phi[g] * scores[r]
            own = shares[g] * away
            slopes[1, g] += own
            slopes[1, size] += own * phi[g] * scores[r]
            own = shares[g] * (away * away / variance - 1.0)
            slopes[2, g] += own
            slopes[2, size] += own * phi[g] * scores[r]
    return sums


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
    support, slopes, own = np.zeros(slots), np.zeros(slots + 1), np.zeros(slots + 1)
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
        own[slots] = mean / mass - mean_before / mass_before
        for slot in range(slots):
            shown += counts[slot]
        for slot in range(slots):
            own[slot] = 0.0
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
            own[slot] = (counts[slot] - passed) / p - passed * pull / mass
        for slot in range(slots + 1):
            slopes[slot] += own[slot]
            for other in range(slots + 1):
                information[slot, other] += own[slot] * own[other]
    return support, slopes, information
