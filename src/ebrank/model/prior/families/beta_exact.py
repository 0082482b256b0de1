"""The posterior of a Beta prior under the position-based model itself, by numerical integration.

A user examines rank k with probability p_k and clicks what is relevant, so a relevance R explains
an item's counts with likelihood

    L(R) = R^c · Π_k (1 − p_k·R)^passed_k

which no Beta can follow: `ips` and `exposure` approximate it. Here the integrals over R^(α−1)
(1−R)^(β−1) L(R) are sums over nodes of u = log(R/(1−R)) around the place where the integrand falls
off, u = center + width·sinh(t) with equal steps of t: close together there, far apart in the tails,
and out to where the integrand has almost vanished.

For α and β from 0.05 to 1000 and any counts up to a million, the error is below 1e-6 of the mean,
1e-5 of the spread and 1e-6 of the loss; for any α that a score can give and β from 0.001 to 10,000,
it is below 1e-4, 1e-3 and 1e-5.
"""

from __future__ import annotations

import numpy as np

from ebrank.equations import HIGHEST_LOG_ALPHA, LOWEST_LOG_ALPHA, prior_alpha
from ebrank.evidence.sums import ItemCounts, clicks_sum, number
from ebrank.kernels.registry import register
from ebrank.kernels.special import log_gamma_and_digamma

NODES = 49
REACH = 5.0
"""How many widths the nodes extend at least, to either side."""
NEGLIGIBLE = -25.0
"""The log of the integrand's height, relative to the center, at which its tails are cut off."""
FARTHEST = 1e9
"""How far from the center tails are followed: enough for the smallest α and β."""
CLOSE = 0.1
"""How precisely the center is found, as a part of the width."""


def odds(u: float) -> tuple[float, float, float]:
    """Return R = 1/(1 + e^−u), 1 − R, and −log of the larger of both."""
    small = np.exp(-abs(u))
    large = 1.0 / (1.0 + small)
    small *= large
    return (large, small, -np.log(large)) if u > 0.0 else (small, large, -np.log(large))


def examination_of(slot: int, item_counts: ItemCounts) -> float:
    """Return p of a slot."""
    return number(item_counts.table[item_counts.slots + slot])


def passed_at(slot: int, item_counts: ItemCounts) -> float:
    """Return how many impressions at a slot led to nothing, with behaviors counted by weight."""
    counts, slots, behaviors, table = item_counts
    total: float = counts[slot] - counts[slots + slot] * number(table[2 * slots + slot])
    for behavior in range(2, 1 + behaviors):  # few have any beside clicks
        place = behavior * slots + slot
        total -= counts[place] * number(table[slots + place])
    return total


def center_and_width(hits: float, misses: float, item_counts: ItemCounts) -> tuple[float, float]:
    """Return where R^hits (1 − R)^misses Π (1 − p R)^passed is highest in u, and 1/√curvature.

    The slope by u, divided by 1 − R, falls with R: hits − misses·R/(1−R) − Σ passed·p·R/(1−p·R).
    Its root lies between those of p = 0 and p = 1.
    """
    passed = 0.0
    for slot in range(item_counts.slots):
        passed += passed_at(slot, item_counts)
    low, high = np.log(hits / (misses + passed)), np.log(hits / misses)
    u, width, error = 0.0, 0.0, np.inf
    while error > CLOSE * width:
        u, error = 0.5 * (low + high), 0.5 * (high - low)
        r, q, _ = odds(u)
        slope = hits - misses * r / q
        bend = misses * r
        for slot in range(item_counts.slots):
            p = examination_of(slot, item_counts)
            pull = passed_at(slot, item_counts) * p * r / (1.0 - p + p * q)
            slope -= pull
            bend += pull * q * q / (1.0 - p + p * q)
        low, high = (u, high) if slope > 0.0 else (low, u)
        width = 1.0 / np.sqrt(bend)
    return u, width


def log_height(u: float, a: float, beta: float, item_counts: ItemCounts) -> float:
    """Return log(R^a (1 − R)^β Π (1 − p R)^passed) at R = 1/(1 + e^−u)."""
    _, q, bent = odds(u)
    total = a * (min(u, 0.0) - bent) + beta * (min(-u, 0.0) - bent)
    for slot in range(item_counts.slots):
        p = examination_of(slot, item_counts)
        missed = passed_at(slot, item_counts)
        if missed > 0.0 and p > 0.0:
            total += missed * np.log(1.0 - p + p * q)
    return float(total)


def reach(
    side: float, center: float, width: float, a: float, beta: float, item_counts: ItemCounts
) -> float:
    """Return how far the integrand is worth following to one side, −1 or 1."""
    top = log_height(center, a, beta, item_counts)
    distance = REACH * width
    edge = log_height(center + side * distance, a, beta, item_counts)
    while edge > top + NEGLIGIBLE and distance < FARTHEST:
        distance *= 2.0
        edge = log_height(center + side * distance, a, beta, item_counts)
    return distance


def exact_moments(
    alpha: float, beta: float, item_counts: ItemCounts
) -> tuple[float, float, float, float]:
    """Return of the posterior: mean, spread, mean of log R; and log ∫ R^(α−1) (1−R)^(β−1) L(R) dR.

    If a tail is long, its shoulder is the center, not the highest point: hence `max`.
    """
    a = alpha + number(clicks_sum(*item_counts))
    center, width = center_and_width(max(a, 1.0), max(beta, 1.0), item_counts)
    left = reach(-1.0, center, width, a, beta, item_counts)
    right = reach(1.0, center, width, a, beta, item_counts)
    first = -np.arcsinh(left / width)
    step = (np.arcsinh(right / width) - first) / (NODES - 1)
    top = log_height(center, a, beta, item_counts)
    middle, rest, _ = odds(center)
    grown, growth = np.exp(first), np.exp(step)
    mass, shift, square, mean_log = 0.0, 0.0, 0.0, 0.0
    for _ in range(NODES):
        u = center + width * 0.5 * (grown - 1.0 / grown)  # sinh t
        height = log_height(u, a, beta, item_counts) - top
        weight = np.exp(height) * 0.5 * (grown + 1.0 / grown)  # cosh t
        r, q, bent = odds(u)
        off = r * rest - q * middle  # r − middle, without cancellation near 0 and 1
        mass += weight
        shift += weight * off
        square += weight * off * off
        mean_log += weight * (min(u, 0.0) - bent)
        grown *= growth
    shift /= mass
    return (
        float(middle + shift),
        float(np.sqrt(max(square / mass - shift * shift, 0.0))),
        float(mean_log / mass),
        float(np.log(mass * width * step) + top),
    )


def exact_loss(score: float, beta: float, item_counts: ItemCounts) -> tuple[float, float]:
    """Return −log ∫ Beta(R; α, β) L(R) dR with α = exp(score), and its slope by the score.

    ∂/∂α log of the integral is the posterior mean of log R minus the prior's, ψ(α) − ψ(α + β).
    """
    alpha = prior_alpha(score)
    _, _, mean_log, log_mass = exact_moments(alpha, beta, item_counts)
    hits, hits_slope = log_gamma_and_digamma(alpha)
    all_, all_slope = log_gamma_and_digamma(alpha + beta)
    misses, _ = log_gamma_and_digamma(beta)
    inside = LOWEST_LOG_ALPHA <= score <= HIGHEST_LOG_ALPHA
    slope = -alpha * (mean_log - hits_slope + all_slope) * inside
    return hits + misses - all_ - log_mass, slope


register(__name__)
