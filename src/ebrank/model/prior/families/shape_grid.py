"""The posterior of a prior on a grid of relevances, under the position-based model itself.

With features x, the relevance R_g of the grid has prior weight and likelihood

    π_g ∝ exp(b_g + s(x)·φ_g)           L_g = R_g^c · Π_k (1 − p_k·R_g)^passed_k

The grid is even in u = logit R, where sums over it converge as fast as integrals can, until the
posterior is narrower than the grid. From there on, R̂ and σ come from the peak of the posterior in
u and its derivatives there: Laplace's method, to second order.

For shapes that change little within a step (bells of 1.5 steps or more) and any counts up to a
million, compared with the integral that the nodes approximate: near the hand-over, where the
posterior's spread in u is 0.3 to 1.2 steps, the mean is off by less than 0.06 of the spread, and
the spread by less than 7 %; elsewhere by less than 0.015 and 1.5 %. A relevance beyond the grid is
put at its end.

`learned` holds the model's numbers: the size of the grid G, which is a multiple of LANES, its step
in u, and its first u; then G numbers each of R, φ, b and log R; then G numbers log(1 − p_k·R) for
each slot k; then log p_k of each slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ebrank.equations import horizon_bonus
from ebrank.evidence.sums import ItemCounts, clicks_sum, exposure_sum, number
from ebrank.kernels import streams
from ebrank.kernels.compiled import inner
from ebrank.kernels.lanes import (
    LANES,
    Lanes,
    above,
    exp_below_one,
    lanes_at,
    lanes_from,
    largest,
    put_lanes,
    total,
)
from ebrank.kernels.pointers import room
from ebrank.model.prior.families.beta_exact import examination_of, passed_at
from ebrank.model.prior.families.shape import STEEPEST

HEAD = 3
"""Numbers before the first row."""
RELEVANCE, TILT, BASE, LOGARITHM, PASSED = range(5)
"""Rows of `learned`; from the last on, one for each slot."""
NARROW = 0.36
"""A posterior is narrow if its variance in u is below this part of the squared step."""
BROAD = 2.13
"""Weights of at most 1 with this sum are not narrow: 1, 1 and 0.13 side by side are closest."""
STEPS = 12
"""The most Newton steps towards the peak; two or three are the rule."""
CLOSE = 0.03
"""How near the peak the last step begins, in standard deviations."""
SURE = 3.0
"""With this many times the evidence that makes a posterior narrow, the grid is not read."""


@inner
def steepness(score: float) -> float:
    """Return the score, clipped."""
    return min(max(score, -STEEPEST), STEEPEST)


@inner
def exposure_of(item_counts: ItemCounts) -> float:
    """Return E."""
    return number(exposure_sum(item_counts.counts, item_counts.slots, item_counts.table))


@inner
def write_prior(score: float, learned: Sequence[float], out: Any) -> float:  # noqa: ANN401 (a pointer)
    """Write log π_g, up to a constant; return the largest."""
    size, top = int(learned[0]), -np.inf
    for g in range(0, size, LANES):
        heights = prior_at(g, size, score, learned)
        put_lanes(out, g, heights)
        top = max(top, largest(heights))
    return top


@inner
def prior_at(g: int, size: int, score: float, learned: Sequence[float]) -> Lanes:
    """Return log π_g from a node on, up to a constant."""
    tilt, base = HEAD + TILT * size, HEAD + BASE * size
    return lanes_at(learned, base + g) + steepness(score) * lanes_at(learned, tilt + g)


@inner
def write_posterior(
    score: float,
    clicks: float,
    item_counts: ItemCounts,
    learned: Sequence[float],
    out: Any,  # noqa: ANN401 (a pointer)
) -> float:
    """Write log π_g L_g, up to a constant; return the largest."""
    size, top = int(learned[0]), -np.inf
    for g in range(0, size, LANES):
        heights = posterior_at(g, size, score, clicks, item_counts, learned)
        put_lanes(out, g, heights)
        top = max(top, largest(heights))
    return top


@inner
def posterior_at(
    g: int,
    size: int,
    score: float,
    clicks: float,
    item_counts: ItemCounts,
    learned: Sequence[float],
) -> Lanes:
    """Return log π_g L_g from a node on, up to a constant."""
    logarithm, passes = HEAD + LOGARITHM * size, HEAD + PASSED * size
    heights = prior_at(g, size, score, learned) + clicks * lanes_at(learned, logarithm + g)
    for slot in range(item_counts.slots):
        # Without a branch on `passed`, which no processor can predict.
        passed = passed_at(slot, item_counts)
        heights = heights + passed * lanes_at(learned, passes + slot * size + g)
    return heights


@inner
def moments(score: float, item_counts: ItemCounts, learned: Sequence[float]) -> tuple[float, float]:
    """Return the posterior's mean R̂ and standard deviation σ."""
    mean, spread, _ = planned(score, item_counts, learned, 0.0)
    return mean, spread


@inner
def planned(
    score: float, item_counts: ItemCounts, learned: Sequence[float], horizon: float
) -> tuple[float, float, float]:
    """Return R̂, σ, and λ − R̂, what the item is worth beyond R̂ if H more lists matter."""
    clicks = number(clicks_sum(*item_counts))
    step, first = learned[1], learned[2]
    if clicks * NARROW * step * step > SURE:
        rest = exposure_of(item_counts) - clicks
        if rest * NARROW * step * step > SURE:
            guess = (np.log(clicks / rest) - first) / step
            mean, spread = at_the_peak(score, clicks, guess, item_counts, learned)
            if spread > 0.0:
                return mean, spread, horizon_bonus(mean, spread, horizon)
    return on_the_grid(score, clicks, item_counts, learned, horizon)


@inner
def on_the_grid(
    score: float, clicks: float, item_counts: ItemCounts, learned: Sequence[float], horizon: float
) -> tuple[float, float, float]:
    """Return what `planned` does from sums over the grid, unless the peak is narrow."""
    size, weights = int(learned[0]), room()
    if size == LANES:  # the usual grid, which the processor can hold in registers
        heights = posterior_at(0, LANES, score, clicks, item_counts, learned)
        heights = heights - largest(heights)
        mass, first, second = write_weights(heights, 0, learned, weights)
    else:
        top = write_posterior(score, clicks, item_counts, learned, weights)
        mass, first, second = 0.0, 0.0, 0.0
        for g in range(0, size, LANES):
            sums = write_weights(lanes_at(weights, g) - top, g, learned, weights)
            mass, first, second = mass + sums[0], first + sums[1], second + sums[2]
    part = 1.0 / mass
    mean = first * part
    spread = np.sqrt(max(second * mass - first * first, 0.0)) * part  # root beside quotient
    place = narrow_place(weights, size, mass)
    if place >= 0.0:
        peak, peak_spread = at_the_peak(score, clicks, place, item_counts, learned)
        if peak_spread > 0.0:
            return peak, peak_spread, horizon_bonus(peak, peak_spread, horizon)
    return mean, spread, index(weights, mass, mean, spread, learned, horizon) - mean


@inner
def index(
    weights: Any,  # noqa: ANN401 (a pointer)
    mass: float,
    mean: float,
    spread: float,
    learned: Sequence[float],
    horizon: float,
) -> float:
    """Return about λ = R̂ + w·E[(R − λ)⁺] (`equations.exploration_weight`), given some weights.

    One Newton step from where λ is if the posterior is normal, but below the end of the grid. The
    right-hand side is convex in λ, so the step ends below λ, whatever it begins with: in 19 of 20
    random posteriors λ − R̂ is at most 15 % too small.
    """
    size = int(learned[0])
    doubt = spread * np.sqrt(horizon / max(mean * (1.0 - mean), 1e-12))  # √s
    normal = 0.763 * spread * doubt / (1.0 + 0.359 * doubt)
    start = mean + min(normal, 0.8 * (learned[HEAD + size - 1] - mean))
    weight = doubt * (doubt + 2.0) / mass
    tail, tail_sum = 0.0, 0.0
    for g in range(0, size, LANES):
        relevance = lanes_at(learned, HEAD + g)
        beyond = lanes_at(weights, g) * above(relevance, start)
        tail += total(beyond)
        tail_sum += total(beyond * relevance)
    return float((mean + weight * tail_sum) / (1.0 + weight * tail))


@inner
def write_weights(
    heights: Lanes,
    g: int,
    learned: Sequence[float],
    out: Any,  # noqa: ANN401 (a pointer)
) -> tuple[float, float, float]:
    """Write e^height from a node on; return the sums of weights times 1, R and R²."""
    weights, relevance = exp_below_one(heights), lanes_at(learned, HEAD + g)
    put_lanes(out, g, weights)
    return total(weights), total(weights * relevance), total(weights * relevance * relevance)


@inner
def narrow_place(weights: Any, size: int, mass: float) -> float:  # noqa: ANN401 (a pointer)
    """Return where on the grid some weights are centered; −1 if they are not narrow.

    The weights are at most 1, and `mass` is their sum.
    """
    if mass >= BROAD:
        return -1.0
    place, places = 0.0, 0.0
    for g in range(0, size, LANES):
        weight, node = lanes_at(weights, g), lanes_from(g)
        place += total(weight * node)
        places += total(weight * node * node)
    narrow = places * mass - place * place < NARROW * mass * mass
    return place / mass if narrow else -1.0


@inner
def at_the_peak(
    score: float, clicks: float, place: float, item_counts: ItemCounts, learned: Sequence[float]
) -> tuple[float, float]:
    """Return mean and standard deviation from the peak near a place of the grid.

    Between nodes, log π is the parabola through the nearest three. A standard deviation of 0 says
    that there is no narrow peak within the grid.
    """
    size, step, steep = int(learned[0]), learned[1], steepness(score)
    tilt, base = HEAD + TILT * size, HEAD + BASE * size
    middle = min(max(int(place + 0.5), 1), size - 2)
    left = learned[base + middle - 1] + steep * learned[tilt + middle - 1]
    center = learned[base + middle] + steep * learned[tilt + middle]
    right = learned[base + middle + 1] + steep * learned[tilt + middle + 1]
    bend = (right - 2.0 * center + left) / (step * step)
    slope = (right - left) / (2.0 * step)
    _, relevance, variance, third = peak(clicks, place, middle, slope, bend, item_counts, learned)
    if variance == 0.0:
        return 0.0, 0.0
    v, lean = relevance * (1.0 - relevance), 1.0 - 2.0 * relevance
    shift = 0.5 * third * variance * variance
    return relevance + v * (shift + 0.5 * lean * variance), v * np.sqrt(variance)


@inner
def peak(
    clicks: float,
    place: float,
    middle: int,
    prior_slope: float,
    prior_bend: float,
    item_counts: ItemCounts,
    learned: Sequence[float],
) -> tuple[float, float, float, float]:
    """Return u and R at the peak of log π·L, the variance of u, and the third derivative.

    log π has a slope and a curvature at a node, `middle`. Newton's steps begin at a place of the
    grid. A variance of 0 says that there is no narrow peak within the grid.
    """
    size, step, first = int(learned[0]), learned[1], learned[2]
    passed, p = room(), room()
    for slot in range(item_counts.slots):
        passed[slot] = passed_at(slot, item_counts)
        p[slot] = examination_of(slot, item_counts)
    last = first + step * (size - 1)
    u = min(max(first + step * place, first), last)
    relevance, bend, third, move = 0.0, -1.0, 0.0, step
    for _ in range(STEPS):
        small = np.exp(-abs(u))
        large = 1.0 / (1.0 + small)
        relevance = large if u > 0.0 else small * large
        rest = small * large if u > 0.0 else large
        v, lean = relevance * rest, rest - relevance
        s1, s2, s3 = 0.0, 0.0, 0.0  # sums of passed·(p/(1 − pR))^j
        for slot in range(item_counts.slots):
            q = p[slot] / (1.0 - p[slot] * relevance)
            s1 += passed[slot] * q
            s2 += passed[slot] * q * q
            s3 += passed[slot] * q * q * q
        slope = clicks * rest - v * s1
        slope += prior_slope + prior_bend * (u - first - step * middle)
        bend = min(prior_bend, 0.0) - clicks * v - v * lean * s1 - v * v * s2
        third = (2.0 * v - lean * lean) * v * s1 - clicks * v * lean
        third -= v * v * (3.0 * lean * s2 + 2.0 * v * s3)
        leaving = (u > last and slope > 0.0) or (u < first and slope < 0.0)
        if leaving or bend > -1e-300:
            return 0.0, 0.0, 0.0, 0.0
        move = -slope / bend
        u += min(max(move, -step), step)
        if move * move * -bend < CLOSE * CLOSE:
            break
    if not first <= u <= last or -bend * NARROW * step * step < 1.0 or abs(move) > step:
        return 0.0, 0.0, 0.0, 0.0
    relevance += relevance * (1.0 - relevance) * move
    return u, relevance, -1.0 / bend, third


@inner
def narrow_likelihood(
    clicks: float, item_counts: ItemCounts, learned: Sequence[float]
) -> tuple[float, float, float]:
    """Return where on the grid a narrow likelihood is, the log of its sum, and R at its peak.

    Nodes are too far apart to sum over a narrow one; its place is between two of them instead. A
    place below 0 says that it is not narrow.
    """
    step, first = learned[1], learned[2]
    seen = exposure_of(item_counts)
    if min(clicks, seen - clicks) * NARROW * step * step < 1.0:
        return -1.0, 0.0, 0.0
    guess = (np.log(clicks / (seen - clicks)) - first) / step
    u, relevance, variance, _ = peak(clicks, guess, 0, 0.0, 0.0, item_counts, learned)
    if variance == 0.0:
        return -1.0, 0.0, 0.0
    height = clicks * np.log(relevance)
    for slot in range(item_counts.slots):
        passed = passed_at(slot, item_counts)
        p = examination_of(slot, item_counts)
        height += passed * np.log(1.0 - p * relevance)
    mass = height + 0.5 * np.log(2.0 * np.pi * variance) - np.log(step)
    return min((u - first) / step, learned[0] - 1.001), mass, relevance


@inner
def prior_mean(score: float, learned: Sequence[float]) -> float:
    """Return the mean of the prior."""
    weights = room()
    top = write_prior(score, learned, weights)
    mass, mean = mass_and_mean(weights, top, HEAD + RELEVANCE * int(learned[0]), learned)
    return mean / mass


@inner
def mass_and_mean(
    logarithms: Any,  # noqa: ANN401 (a pointer)
    top: float,
    row: int,
    learned: Sequence[float],
) -> tuple[float, float]:
    """Return the sum of weights, e^(logarithm − top), and that of weights times a row's numbers."""
    mass, mean = 0.0, 0.0
    for g in range(0, int(learned[0]), LANES):
        weight = exp_below_one(lanes_at(logarithms, g) - top)
        mass += total(weight)
        mean += total(weight * lanes_at(learned, row + g))
    return mass, mean


@inner
def loss(score: float, item_counts: ItemCounts, learned: Sequence[float]) -> tuple[float, float]:
    """Return −log Σ_g π_g·L_g, with p_k^clicked_k in L, and its slope by the score.

    The slope by the log weight of node g is π_g − posterior_g, so that by the score is the
    difference of the means of φ.
    """
    size, weights = int(learned[0]), room()
    tilt, logs = HEAD + TILT * size, HEAD + (PASSED + item_counts.slots) * size
    top = write_prior(score, learned, weights)
    mass, mean = mass_and_mean(weights, top, tilt, learned)
    value = np.log(mass) + top
    for slot in range(item_counts.slots):
        clicked = item_counts.counts[slot] - passed_at(slot, item_counts)
        value -= clicked * learned[logs + slot]
    inside = -STEEPEST <= score <= STEEPEST
    clicks = number(clicks_sum(*item_counts))
    place, whole, _ = narrow_likelihood(clicks, item_counts, learned)
    if place >= 0.0:
        node = int(place)
        part = place - node
        height = (1.0 - part) * weights[node] + part * weights[node + 1]
        seen = (1.0 - part) * learned[tilt + node] + part * learned[tilt + node + 1]
        return value - height - whole, (mean / mass - seen) * inside
    after = write_posterior(score, clicks, item_counts, learned, weights)
    mass_after, mean_after = mass_and_mean(weights, after, tilt, learned)
    value -= np.log(mass_after) + after
    return value, (mean / mass - mean_after / mass_after) * inside


@inner
def draw(score: float, item_counts: ItemCounts, learned: Sequence[float], key: np.uint64) -> float:
    """Return a draw from the posterior: a node, spread evenly over its step in u.

    A narrow posterior is drawn as a normal one in R.
    """
    size, weights = int(learned[0]), room()
    clicks = number(clicks_sum(*item_counts))
    top = write_posterior(score, clicks, item_counts, learned, weights)
    mass = 0.0
    for g in range(0, size, LANES):
        weight = exp_below_one(lanes_at(weights, g) - top)
        put_lanes(weights, g, weight)
        mass += total(weight)
    if narrow_place(weights, size, mass) >= 0.0:
        mean, spread = moments(score, item_counts, learned)
        return min(max(mean + spread * streams.normal(key), 0.0), 1.0)
    left = streams.uniform(key) * mass
    node = 0
    while node < size - 1 and left >= weights[node]:
        left -= weights[node]
        node += 1
    u = learned[2] + learned[1] * (node + left / max(weights[node], 1e-300) - 0.5)
    return 1.0 / (1.0 + np.exp(-u))  # type: ignore[no-any-return]
