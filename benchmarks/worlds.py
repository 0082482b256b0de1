"""Six small shops, served over HTTP with the service's default settings.

Each has 16 queries with 30 items at first. Every query gets 600 lists of ten, and a new item every
25 lists. An item's relevance is R = .02 + (highest − .02)·logistic(2z − 1.5), where z is 1.2·x₁ +
.8·x₂ + noise·N(0, 1), standardized; all features are uniform, three more mean nothing. Users look
at rank k with probability log2(k + 1)^−severity; the service believes in severity 1 until it knows
better. A ranker's figure is its share of the clicks that an all-knowing one would expect.

`python -m benchmarks.worlds [--seeds N]` prints all figures; a seed takes some five minutes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import numpy as np

from benchmarks.figure import Figure, print_figures
from ebrank.client import Client
from ebrank.service.api import EventIn, RankResponse
from ebrank.typing import Floats, Ints
from tests.serving import serving

QUERIES, LISTS, K = 16, 600, 10
FIRST_ITEMS, FEATURES = 30, 5
FIRST_SEED = 301
EBRANK = '[ranking]\npolicy = "ebrank:estimator=exposure,epsilon=20"\n'


@dataclass(frozen=True)
class World:
    """A shop.

    Attributes:
        name: what it shows.
        highest: relevance of the best items.
        noise: how much of the relevance features do not know.
        severity: how fast users stop looking.
        arrival: a new item comes every so many lists of a query.
    """

    name: str
    highest: float = 0.7
    noise: float = 0.5
    severity: float = 1.0
    arrival: int = 25

    @property
    def items(self) -> int:
        """Items of a query in the end."""
        return FIRST_ITEMS + LISTS // self.arrival


WORLDS = (
    World("base"),
    World("low click rates", highest=0.12),
    World("users who look further down", severity=0.4),
    World("users who look at all ten alike", highest=0.9, severity=0.0),
    World("users who look at the top only", highest=0.9, severity=2.0),
    World("strong features, many arrivals", noise=0.15, arrival=6),
)


class Ranker(Protocol):
    """Makes lists and learns from clicks."""

    def add(self, query: int, item: int, features: Floats) -> None:
        """Take in a new item."""
        ...

    def rank(self, query: int) -> tuple[Ints, object]:
        """Return the items of a list, and what tells it apart from others."""
        ...

    def learn(self, query: int, served: Ints, clicked: Ints, ticket: object) -> None:
        """Take in which ranks of a list were clicked."""
        ...


class Rates:
    """What a shop does today: clicks over impressions, smoothed, with or without optimism.

    Plain: (c + 5ḡ)/(n + 5). Optimistic: E in place of n, plus .5·√(ḡ/(E + 5)).
    """

    def __init__(self, world: World, *, optimistic: bool) -> None:
        self._optimistic = optimistic
        self._counts = np.zeros((QUERIES, world.items, 3))  # clicks, impressions, exposure
        self._items = np.zeros(QUERIES, np.int64)
        self._assumed = 1.0 / np.log2(np.arange(2, K + 2))

    def add(self, query: int, item: int, features: Floats) -> None:  # noqa: D102
        self._items[query] += 1

    def rank(self, query: int) -> tuple[Ints, object]:  # noqa: D102
        clicks, shown, exposure = self._counts[query, : self._items[query]].T
        trials = exposure if self._optimistic else shown
        total = self._counts.sum(axis=(0, 1))
        mean = (total[0] + 1.0) / (total[2 if self._optimistic else 1] + 5.0)
        score = (clicks + 5.0 * mean) / (trials + 5.0)
        if self._optimistic:
            score = score + 0.5 * np.sqrt(mean / (trials + 5.0))
        return np.argsort(-score, kind="stable")[:K], None

    def learn(self, query: int, served: Ints, clicked: Ints, ticket: object) -> None:  # noqa: D102
        own = self._counts[query]
        own[served[clicked], 0] += 1.0
        own[served, 1] += 1.0
        own[served, 2] += self._assumed[: len(served)]


class Served:
    """A ranker behind HTTP."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lists = 0

    def add(self, query: int, item: int, features: Floats) -> None:  # noqa: D102
        self._client.put_items(f"query-{query}", {f"item-{item}": features.tolist()})

    def rank(self, query: int) -> tuple[Ints, object]:  # noqa: D102
        self._lists += 1
        if self._lists % 50 == 0:
            self._wait()
        answer = self._client.rank(f"query-{query}", k=K)
        return np.array([int(item.id.removeprefix("item-")) for item in answer.items]), answer

    def learn(self, query: int, served: Ints, clicked: Ints, ticket: object) -> None:  # noqa: D102
        assert isinstance(ticket, RankResponse)
        names = [ticket.items[rank].id for rank in clicked.tolist()]
        events = [EventIn(uuid4().hex, ticket.ranking_id, name, "click") for name in names]
        if events:
            self._client.feedback(events)

    def _wait(self) -> None:
        """Let training finish: in a real shop, lists are further apart."""
        while self._client.models().training.running:
            time.sleep(0.05)


def share(world: World, ranker: Ranker, seed: int) -> float:
    """Return the share of an all-knowing ranker's expected clicks."""
    rng = np.random.default_rng(seed)
    x = rng.random((QUERIES, world.items, FEATURES))
    z = 1.2 * x[..., 0] + 0.8 * x[..., 1] + world.noise * rng.normal(size=x.shape[:2])
    z = (z - z.mean()) / z.std()
    relevance = 0.02 + (world.highest - 0.02) / (1.0 + np.exp(1.5 - 2.0 * z))
    p = np.log2(np.arange(2, K + 2)) ** -world.severity
    minds = np.random.default_rng(seed + 1)
    gained, possible = 0.0, 0.0
    for turn in range(LISTS):
        for query in range(QUERIES):
            first = 0 if turn == 0 else FIRST_ITEMS + (turn - 1) // world.arrival
            last = FIRST_ITEMS + turn // world.arrival
            for item in range(first, last):
                ranker.add(query, item, x[query, item])
            served, ticket = ranker.rank(query)
            chance = p[: len(served)] * relevance[query, served]
            clicked = np.flatnonzero(minds.random(K)[: len(served)] < chance)
            ranker.learn(query, served, clicked, ticket)
            best = np.sort(relevance[query, :last])[::-1][:K]
            gained += float(chance.sum())
            possible += float(p @ best)
    return gained / possible


def served_share(world: World, seed: int, config: str = "") -> float:
    """Return the share of a service."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "store", config=config) as server,
        Client(server.address) as client,
    ):
        return share(world, Served(client), seed)


RANKERS: dict[str, Callable[[World, int], float]] = {
    "smoothed click rates": lambda world, seed: share(world, Rates(world, optimistic=False), seed),
    "the same, optimistic": lambda world, seed: share(world, Rates(world, optimistic=True), seed),
    "EBRank, exposure, ε = 20": lambda world, seed: served_share(world, seed, EBRANK),
    "the service's default": served_share,
}


def figures(seeds: int = 3) -> Iterator[Figure]:
    """Yield the service's share in each world, beside those of the others."""
    for world in WORLDS:
        shares = {
            name: float(np.mean([run(world, FIRST_SEED + seed) for seed in range(seeds)]))
            for name, run in RANKERS.items()
        }
        *others, ours = shares.values()
        lowest = max(max(others) - 0.005, 0.8 if world.name == "low click rates" else 0.0)
        beside = ", ".join(f"{name} {value:.3f}" for name, value in list(shares.items())[:-1])
        yield Figure(world.name, f"{ours:.3f} ({beside})", f"≥ {lowest:.3f}", ours >= lowest)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    print_figures(figures(parser.parse_args().seeds))
