"""Experiments that are looked at daily: false alarms of A/A, power of A/B."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.figure import Figure, print_figures
from ebrank.statistics.sequential import Interval, Moments, difference, sample_ratio_p
from ebrank.typing import Floats

SEED, EXPERIMENTS, DAYS, UNITS = 411, 1000, 30, 1000
RUNS, DAILY = 200, 200
K, ITEMS, QUERIES = 5, 12, 200
LEVEL = 0.05
P = 1.0 / np.log2(np.arange(2, K + 2))


def figures(seed: int = SEED) -> Iterator[Figure]:
    """Yield false alarms, then power."""
    for split in ("users", "queries"):
        always, daily, once, ratio = peeked(np.random.default_rng([seed, len(split)]), split)
        yield Figure(
            f"{EXPERIMENTS:,} A/A experiments by {split}, {DAYS} daily looks: false alarms",
            f"{always:.1%} (z-test daily {daily:.1%}, z-test once {once:.1%})",
            f"≤ {LEVEL:.0%}",
            always <= LEVEL,
        )
        yield Figure(
            "the same: false alarms of the sample-ratio check",
            f"{ratio:.1%}",
            f"≤ {LEVEL:.0%}",
            ratio <= LEVEL,
        )
    for noise in (0.08, 0.16):
        yield power(np.random.default_rng([seed, int(100 * noise)]), noise)


def excludes_0(interval: Interval) -> bool:
    """Return whether there is a difference, by its interval."""
    return not interval.low <= 0.0 <= interval.high


def peeked(rng: np.random.Generator, split: str) -> Floats:
    """Return how often experiments without a difference find one: always, z daily, z once, ratio.

    Users come on any day and make a few lists; queries are there from the first day on, some far
    more popular than others. Both click at rates of their own.
    """
    alarms = np.zeros((EXPERIMENTS, 4), np.bool_)
    for alarm in alarms:
        treated, rate = rng.random(UNITS) < 0.5, rng.beta(2.0, 6.0, UNITS)
        pace = rng.pareto(2.0, UNITS) + 0.3 if split == "queries" else np.full(UNITS, 0.4)
        begins = rng.integers(0, DAYS, UNITS) if split == "users" else np.zeros(UNITS)
        clicks, lists = np.zeros((2, UNITS))
        for day in range(DAYS):
            today = rng.poisson(pace) * (day >= begins)
            lists, clicks = lists + today, clicks + rng.binomial(today, rate)
            arms = [Moments.of(clicks[arm], lists[arm]) for arm in (treated, ~treated)]
            alarm[0] |= excludes_0(difference(*arms))
            alarm[2] = excludes_0(difference(*arms, looks="once"))
            alarm[1] |= alarm[2]
            seen = lists > 0
            counts = [int((seen & arm).sum()) for arm in (treated, ~treated)]
            alarm[3] |= sample_ratio_p(counts, [0.5, 0.5]) < LEVEL
    return np.asarray(alarms.mean(axis=0))


def chances(rng: np.random.Generator, noise: float) -> Floats:
    """Return the chances of a click by arm, query and rank.

    The control orders items with noise, the treatment with half of it.
    """
    relevance = rng.beta(1.0, 3.0, (QUERIES, ITEMS))
    orders = [
        np.argsort(-(relevance + rng.normal(scale=scale, size=relevance.shape)), axis=1)
        for scale in (noise, noise / 2)
    ]
    return np.array([P * np.take_along_axis(relevance, order, 1)[:, :K] for order in orders])


def power(rng: np.random.Generator, noise: float) -> Figure:
    """Return how many lists it takes to see a better ranking, a list per user."""
    by_arm = chances(rng, noise)
    lift = by_arm[1].sum() / by_arm[0].sum() - 1.0

    def looks() -> Iterator[tuple[Interval, Interval]]:
        arms = [Moments(), Moments()]
        while True:
            for arm in (0, 1):
                queries = rng.integers(0, QUERIES, DAILY // 2)
                clicks = rng.random((len(queries), K)) < by_arm[arm, queries]
                arms[arm] += Moments.of(clicks.sum(axis=1))
            yield difference(arms[1], arms[0]), difference(arms[1], arms[0], looks="once")

    always, once = _days(looks, most=1000)
    return Figure(
        f"lists until {lift:.1%} more clicks are seen in 80 % of {RUNS} experiments",
        f"{always:,} (z-test once {once:,})",
        "≤ 3 times those of the z-test",
        always <= 3 * once,
    )


def _days(
    experiment: Callable[[], Iterator[tuple[Interval, Interval]]], most: int
) -> tuple[int, int]:
    """Return after how many lists 80 % of experiments have ended, and end if looked at once."""
    stopped, seen = np.full(RUNS, most), np.zeros((RUNS, most), np.bool_)
    for run in range(RUNS):
        for day, (always, once) in zip(range(most), experiment(), strict=False):
            seen[run, day] = excludes_0(once)
            if excludes_0(always):
                stopped[run] = min(stopped[run], day + 1)
                seen[run, day:] = True  # from here on it is hardly ever missed
                break
    enough = np.flatnonzero(seen.mean(axis=0) >= 0.8)
    ended = int(np.quantile(stopped, 0.8, method="higher"))
    return ended * DAILY, int(enough[0] + 1) * DAILY if len(enough) else most * DAILY


if __name__ == "__main__":
    sys.exit(int(not print_figures(figures(*map(int, sys.argv[1:])))))
