"""Logs of sessions for tests, and what a slow reader makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination
from ebrank.evidence import CLICKS, Behaviors, Sums
from ebrank.typing import Floats

Session: TypeAlias = tuple[list[int], list[int]]
"""Items by rank, and what came of each."""

BANDS = [*((k, k) for k in range(1, 11)), (11, 15), (16, 25), (26, 50), (51, 100), (101, 300)]
SHOP = Behaviors.of({"click": 0.3, "cart": 0.7, "purchase": 1.0})

formula_curves = st.builds(Examination, st.floats(0, 3), st.one_of(st.none(), st.integers(1, 1200)))
measured_curves = st.builds(
    lambda curve: Examination(curve=tuple(curve)),
    st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1)), min_size=1, max_size=30).filter(any),
)
curves = st.one_of(formula_curves, measured_curves)


@st.composite
def logs(
    draw: st.DrawFn, n_items: int = 6, behaviors: Behaviors = CLICKS, most: int = 8
) -> list[Session]:
    """Draw a short log of short lists."""
    log = []
    for _ in range(draw(st.integers(0, most))):
        ranking = draw(st.permutations(range(n_items)))[: draw(st.integers(0, n_items))]
        outcome = st.integers(0, behaviors.outcomes - 1)
        log.append((ranking, [draw(outcome) for _ in ranking]))
    return log


def long_log(seed: int, n_items: int, behaviors: Behaviors = CLICKS) -> list[Session]:
    """Return a log of lists of any length up to all items, clicked the more the higher."""
    rng = np.random.default_rng(seed)
    log = []
    for _ in range(rng.integers(1, 12)):
        length = int(rng.integers(0, n_items + 1))
        ranking = rng.permutation(n_items)[:length].tolist()
        clicked = rng.random(length) < 0.5
        outcomes = clicked * rng.integers(1, behaviors.outcomes, length)
        log.append((ranking, outcomes.tolist()))
    return log


def recorded(
    log: Sequence[Session], n_items: int = 6, behaviors: Behaviors = CLICKS
) -> BehaviorStats:
    """Return the statistics of a log."""
    stats = BehaviorStats.zeros(n_items, behaviors=behaviors)
    for ranking, outcomes in log:
        stats.record(ranking, outcomes)
    return stats


@lru_cache(maxsize=1024)
def counted_weights(behaviors: Behaviors) -> Floats:
    """Return the weights as they are counted: whole numbers of 2⁻³⁰."""
    return np.rint(np.array(behaviors.weights) * 2.0**30) * 2.0**-30


def slow_p(curve: Examination, rank: int) -> float:
    """Return p of a rank as statistics know it: the mean of its band as far as users look."""
    first, last = next((band for band in BANDS if band[0] <= rank <= band[1]), (301, 1000))
    probabilities = curve(range(first, last + 1)).tolist()
    while probabilities and probabilities[-1] == 0.0:
        probabilities.pop()
    return sum(probabilities) / len(probabilities) if probabilities else 0.0


def slow_sums(
    log: Sequence[Session], curve: Examination, n_items: int, behaviors: Behaviors = CLICKS
) -> Sums:
    """Return n, c, C and E by reading the log impression by impression, in plain numbers."""
    sums = Sums(*np.zeros((4, n_items)))
    for ranking, outcomes in log:
        for rank, (item, outcome) in enumerate(zip(ranking, outcomes, strict=True), start=1):
            p = slow_p(curve, min(rank, 301))
            if p == 0.0:
                continue
            weight = behaviors.weights[outcome - 1] if outcome else 0.0
            sums.shown[item] += 1
            sums.clicks[item] += weight
            sums.weighted_clicks[item] += weight / p
            sums.exposure[item] += p
    return sums


def bits(sums: Sums) -> bytes:
    """Return all numbers of the sums, bit for bit."""
    return b"".join(values.tobytes() for values in sums)
