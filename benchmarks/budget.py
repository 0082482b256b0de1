"""The budget of exploration, simulated: what it costs with wrong priors and hostile users.

A day of lists is served by the real engine on a store in memory. What exploration really costs is
the difference in expected clicks, by the simulated truth, between the order by relevance alone that
the engine would have served at that moment, and the list it did serve.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.figure import Figure, print_figures
from ebrank.service.api import EventIn, ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.ops import configuration
from ebrank.service.serving.lists import Listing, Logged
from ebrank.service.serving.stages.budget import ALPHA, HELD_OUT
from ebrank.service.store.memory import MemoryStore
from ebrank.statistics.sequential import Moments, difference
from ebrank.typing import Floats

SEED, DAYS, FREE_DAYS = 511, 20, 5
SHARE, POLICY = 0.005, "ebrank:epsilon=20,estimator=exposure"
K, QUERIES, OLD, NEW, LISTS, PAST = 5, 4, 15, 3, 1000, 400
HOURS = 10
P = 1.0 / np.log2(np.arange(2, K + 2))

Users = Callable[[Floats, int], Floats]
"""The chance of a click on examined items, given their quality, at the n-th list of the day."""


def friendly(quality: Floats, number: int) -> Floats:
    """Return chances of users who like what is good."""
    return quality


def hostile(quality: Floats, number: int) -> Floats:
    """Return chances of users who, from noon on, click the worst items."""
    return quality if number < LISTS // 2 else 0.4 - quality


WORLDS: dict[str, tuple[float, Users]] = {
    "new items as good as others": (0.4, friendly),
    "new items worthless, though features say the opposite": (0.0, friendly),
    "users who click the worst items from noon on": (0.4, hostile),
}
"""How good new items are at most, and what users click."""


def figures(seed: int = SEED) -> Iterator[Figure]:
    """Yield what exploration costs in each world, then what the guard does."""
    for number, (name, (best_new, users)) in enumerate(WORLDS.items()):
        limited, free = (
            [asyncio.run(day([seed, number, run], best_new, users, share)) for run in range(days)]
            for share, days in ((SHARE, DAYS), (None, FREE_DAYS))
        )
        worst = max(limited)
        breached = sum(loss > SHARE for loss in limited)
        yield Figure(
            f"days with {name}: cost of exploration, in expected clicks",
            f"{np.mean(limited):.2%}, at most {worst:.2%}; {breached} of {DAYS} days over "
            f"{SHARE:.1%} (without a limit {np.mean(free):.2%}, at most {max(free):.2%})",
            f"≤ {ALPHA:.0%} of days over {SHARE:.1%}",
            breached <= ALPHA * DAYS,
        )
    for loss in (0.0, SHARE, 0.02, 0.05, 0.2):
        stopped, after = guarded(np.random.default_rng([seed, 9]), loss)
        keeps = loss <= SHARE
        yield Figure(
            f"guard, if exploration really costs {loss:.1%}: stopped within 2 M lists",
            f"{stopped:.1%} of 1,000 runs"
            + ("" if keeps else f", half of them by {after:,} lists"),
            f"≤ {ALPHA:.0%}" if keeps else "–",
            not keeps or stopped <= ALPHA,
        )


async def day(seed: Sequence[int], best_new: float, users: Users, share: float | None) -> float:
    """Return the share of expected clicks that exploration cost on a day."""
    rng, now = np.random.default_rng(seed), [1_800_000_000.0 // 86400 * 86400]
    flags: dict[str, Any] = {"ranking": {"policy": POLICY, "k": K, "exploration_budget": share}}
    engine = await Engine.open(
        MemoryStore(),
        configuration.read(flags=flags),
        clock=lambda: now[0],
        timer=lambda: now[0],
    )
    quality = rng.uniform(0.0, 0.4, (QUERIES, OLD + NEW * HOURS))
    quality[:, OLD:] *= best_new / 0.4
    served: list[Listing] = []
    watched = engine._activity.logged

    def noted(logged: Logged) -> None:
        if logged.draft is not None:
            served.append(logged.draft.served)
        watched(logged)

    engine._activity.logged = noted  # type: ignore[method-assign]
    lost = total = 0.0
    for query in range(QUERIES):
        await put(engine, query, quality, range(OLD))
    for number in range(-PAST, LISTS):
        if number >= 0 and number % (LISTS // HOURS) == 0:
            hour = number * HOURS // LISTS
            for query in range(QUERIES):
                begins = OLD + NEW * hour
                await put(engine, query, quality, range(begins, begins + NEW))
        now[0] += 80.0 if number >= 0 else 0.0
        query = int(rng.integers(QUERIES))
        answer = await engine.rank(RankRequest(f"q{query}", explore=number >= 0))
        listing = served.pop()
        chances = users(quality[query], number)
        best = listing.candidates.rows[listing.candidates.relevance_order[:K]]
        if number >= 0:
            lost += float(P @ (chances[best] - chances[listing.rows]))
            total += float(P @ chances[best])
        clicked = np.flatnonzero(rng.random(K) < P * chances[listing.rows])
        events = [
            EventIn(f"{number} {rank}", answer.ranking_id, answer.items[rank].id, "click")
            for rank in clicked
        ]
        if events:
            await engine.feedback(events)
    await engine.close()
    return lost / total


async def put(engine: Engine, query: int, quality: Floats, items: range) -> None:
    """Add items, whose one feature says how good old ones are, and that new ones are the best."""
    features = [float(quality[query, item]) if item < OLD else 0.4 for item in items]
    given = [ItemIn(f"i{item}", [value]) for item, value in zip(items, features, strict=True)]
    await engine.put_items(f"q{query}", given)


def guarded(rng: np.random.Generator, loss: float) -> tuple[float, int]:
    """Return how often the guard stops exploration of a true cost, and half of the times when."""
    runs, looks, step, rate = 1000, 200, 10_000, 0.4
    stopped = np.zeros(runs)
    for run in range(runs):
        arms = {}
        for share, chance in ((1.0 - HELD_OUT, rate * (1.0 - loss)), (HELD_OUT, rate)):
            lists = np.full(looks, share * step).cumsum()
            clicks = rng.binomial(int(share * step), chance, looks).cumsum().astype(np.float64)
            arms[share] = [Moments(n, n, c, n, c, c) for n, c in zip(lists, clicks, strict=True)]
        exploring, others = arms.values()
        for look, (a, b) in enumerate(zip(exploring, others, strict=True), 1):
            if difference(a, b, factor=1.0 - SHARE, alpha=ALPHA, sided=1).high < 0.0:
                stopped[run] = look * step
                break
    ended = stopped[stopped > 0]
    return float((stopped > 0).mean()), int(np.median(ended)) if len(ended) else 0


if __name__ == "__main__":
    sys.exit(int(not print_figures(figures(*map(int, sys.argv[1:])))))
