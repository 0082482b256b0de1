"""A shop with two kinds of customers: what a service gains that is told which kind asks.

Thirty queries have 30 items each, with five features. Every day each query gets 12 lists of ten,
half of them for phones; requests tell the device, and one of three segments, which means nothing.
An item's relevance is σ(-2 + w·x + noise). Phones and desks like the first feature, and each a
feature of its own; in the second world both like the same two. Every ten days a third of the items
is replaced, and every five the prior is refitted.

`python -m benchmarks.contexts [--plot FILE]` prints the table of docs/service.md and draws it; it
takes about ten minutes.
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
from ebrank.service.engine import Engine
from ebrank.service.settings import ContextsSettings, Settings
from ebrank.typing import Floats, Ints

QUERIES, ITEMS, FEATURES, LISTS = 30, 30, 5, 12
DAYS, RENEWAL, TRAINING = 60, 10, 5
LEVEL, NOISE = -2.0, 0.5
DEVICES, SEGMENTS = ("mobile", "desktop"), ("new", "old", "unknown")
WORLDS = {
    "each likes its own": ((1.0, 1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 1.0, 0.0, 0.0)),
    "both like the same": ((1.0, 1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0, 0.0)),
}
SPANS = {"days 0–5": (0, 5), "5–10": (5, 10), "10–30": (10, 30), "30–60": (30, 60)}
SEEDS = 2


class Assortment:
    """The items on sale, and what each kind of customer thinks of them."""

    def __init__(self, tastes: Floats, rng: np.random.Generator) -> None:
        self._tastes = tastes
        self._rng = rng
        self._made = 0
        self.features = np.zeros((QUERIES, ITEMS, FEATURES))
        self._noise = np.zeros((QUERIES, ITEMS))
        self.names = [[""] * ITEMS for _ in range(QUERIES)]

    async def renew(self, engine: Engine, query: int, places: Ints) -> None:
        """Put new items in place of old ones."""
        for at in places.tolist():
            if self.names[query][at]:
                await engine.withdraw(f"q{query}", self.names[query][at])
            self._made += 1
            self.names[query][at] = f"i{self._made}"
        self.features[query, places] = self._rng.normal(size=(len(places), FEATURES))
        self._noise[query, places] = self._rng.normal(0.0, NOISE, len(places))
        rows = self.features[query, places].tolist()
        new = [self.names[query][at] for at in places.tolist()]
        await engine.put_items(
            f"q{query}", [ItemIn(name, row) for name, row in zip(new, rows, strict=True)]
        )

    def relevance(self) -> Floats:
        """Return the relevance by device, query and item."""
        logits = LEVEL + np.einsum("df,qif->dqi", self._tastes, self.features) + self._noise
        values: Floats = 1.0 / (1.0 + np.exp(-logits))
        return values


async def daily_shares(most: int, world: str, seed: int) -> Floats:
    """Return the share of the possible clicks on each day."""
    rng = np.random.default_rng(seed)
    shop = Shop(rng)
    engine = await shop.open(Settings(contexts=ContextsSettings(most=most)))
    sold = Assortment(np.array(WORLDS[world]), rng)
    for query in range(QUERIES):
        await sold.renew(engine, query, np.arange(ITEMS))
    shares = np.zeros(DAYS)
    for day in range(DAYS):
        if day and day % TRAINING == 0:
            await _trained(engine)
        if day and day % RENEWAL == 0:
            for query in range(QUERIES):
                await sold.renew(engine, query, rng.choice(ITEMS, ITEMS // 3, replace=False))
        relevance, gained = sold.relevance(), 0.0
        for turn in range(LISTS):
            shop.now = BEGIN + (day + turn / LISTS) * DAY
            device = turn % len(DEVICES)
            for query in range(QUERIES):
                context = {"device": DEVICES[device], "segment": SEGMENTS[int(rng.integers(3))]}

                own = dict(zip(sold.names[query], relevance[device, query], strict=True))
                asked = RankRequest(f"q{query}", k=K, context=context)
                gained += await shop.serve(asked, f"{day} {turn} {query}", own)
        shares[day] = gained / (LISTS / len(DEVICES) * possible_clicks(relevance))
    await engine.close()
    return shares


async def _trained(engine: Engine) -> None:
    """Refit the prior, and wait until that is done."""
    await engine.train()
    while (await engine.models()).training.running:
        await asyncio.sleep(0.01)


def measured(seeds: int = SEEDS) -> dict[tuple[str, int], Floats]:
    """Return the mean daily shares, by world and by how many contexts are learned."""
    return {
        (world, most): np.mean(
            [asyncio.run(daily_shares(most, world, seed)) for seed in range(seeds)], axis=0
        )
        for world in WORLDS
        for most in (0, 16)
    }


def figures() -> Iterator[Figure]:
    """Yield what contexts gain where they matter, and that they cost nothing where not."""
    for world in WORLDS:
        off, on = (float(asyncio.run(daily_shares(most, world, 0))[10:].mean()) for most in (0, 16))
        own = world == "each likes its own"
        yield Figure(
            f"share of the possible clicks from day 10 on, told the device, where {world}",
            f"{on:.3f}",
            f"{'> 0.05 +' if own else '> -0.005 +'} {off:.3f} without contexts",
            on - off > (0.05 if own else -0.005),
        )


def row_name(key: tuple[str, int]) -> str:
    world, most = key
    return f"{world} | {'learned' if most else 'off'}"


def plot(shares: dict[tuple[str, int], Floats], path: Path) -> None:
    """Draw the daily shares."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(WORLDS), figsize=(7.0, 2.8), sharey=True, layout="tight")
    for pane, world in zip(axes, WORLDS, strict=True):
        for most, name in ((16, "contexts learned"), (0, "contexts off")):
            style = "-" if most else "--"
            pane.plot(shares[world, most], style, label=name, linewidth=1.4)
        pane.set_title(world, fontsize=9)
        pane.set_xlabel("day; a third of the items is new every ten")
        pane.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share of possible clicks")
    axes[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(__doc__, measured, partial(table, "customers | contexts", SPANS, name=row_name), plot)
