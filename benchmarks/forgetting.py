"""A shop whose customers change their minds: how soon a service follows that forgets.

Eight queries have 20 items each, without features. Every day each query gets 30 lists of ten. An
item's relevance is drawn from Beta(1, 4); on day 60 all are drawn anew.

`python -m benchmarks.forgetting [--plot FILE]` prints the table of docs/service.md and draws it; it
takes about three minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.figure import Figure
from benchmarks.shop_days import BEGIN, DAY, K, Shop, main, possible_clicks, table
from ebrank.service.api import ItemIn, RankRequest
from ebrank.service.settings import EventsSettings, Settings
from ebrank.typing import Floats

QUERIES, ITEMS, LISTS = 8, 20, 30
DAYS, CHANGE = 120, 60
HALF_LIVES: tuple[float | None, ...] = (None, 60.0, 20.0, 7.0)
SPANS = {"days 40–60": (40, 60), "60–65": (60, 65), "65–80": (65, 80), "80–120": (80, 120)}
SEEDS = 2


async def daily_shares(half_life: float | None, seed: int) -> Floats:
    """Return the share of the possible clicks on each day."""
    rng = np.random.default_rng(seed)
    tastes = rng.beta(1.0, 4.0, (2, QUERIES, ITEMS))
    shop = Shop(rng)
    engine = await shop.open(Settings(events=EventsSettings(half_life_days=half_life)))
    for query in range(QUERIES):
        await engine.put_items(f"q{query}", [ItemIn(str(item), [1.0]) for item in range(ITEMS)])
    shares = np.zeros(DAYS)
    for day in range(DAYS):
        relevance = tastes[int(day >= CHANGE)]
        gained = 0.0
        for turn in range(LISTS):
            shop.now = BEGIN + (day + turn / LISTS) * DAY
            for query, own in enumerate(relevance.tolist()):
                gained += await shop.serve(
                    RankRequest(f"q{query}", k=K),
                    f"{day} {turn} {query}",
                    {str(item): value for item, value in enumerate(own)},
                )
        shares[day] = gained / (LISTS * possible_clicks(relevance))
    await engine.close()
    return shares


def measured(seeds: int = SEEDS) -> dict[float | None, Floats]:
    """Return the mean daily shares by half-life."""
    return {
        half_life: np.mean(
            [asyncio.run(daily_shares(half_life, seed)) for seed in range(seeds)], axis=0
        )
        for half_life in HALF_LIVES
    }


def figures() -> Iterator[Figure]:
    """Yield how soon tastes that change are followed, with and without forgetting."""
    shares = {half_life: asyncio.run(daily_shares(half_life, 0)) for half_life in (None, 7.0)}
    for name, (begin, end) in list(SPANS.items())[1:3]:
        never, week = (float(share[begin:end].mean()) for share in shares.values())
        yield Figure(
            f"clicks kept on days {name} after tastes changed on day 60, half-life of 7 days",
            f"{week:.3f}",
            f"> {never:.3f} without forgetting",
            week > never,
        )


def half_life_name(days: float | None) -> str:
    return "off" if days is None else f"{days:g} days"


def plot(shares: dict[float | None, Floats], path: Path) -> None:
    """Draw the daily shares."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
    for half_life, days in shares.items():
        name = "never forgets" if half_life is None else f"half-life of {half_life:g} days"
        smooth = [days[max(day - 2, 0) : day + 1].mean() for day in range(20, DAYS)]
        axes.plot(range(20, DAYS), smooth, label=name, linewidth=1.4)
    axes.axvline(CHANGE, color="0.6", linewidth=0.8, linestyle=":")
    axes.set_xlabel("day; tastes change on day 60")
    axes.set_ylabel("share of possible clicks")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(__doc__, measured, partial(table, "half-life", SPANS, name=half_life_name), plot)
