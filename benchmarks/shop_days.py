"""Days of a small shop behind the service: what the benchmarks of its settings have in common.

Users look at rank k with probability 1/log2(k + 1). A figure is a share of the clicks that an
all-knowing ranker expects.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from ebrank.service.api import EventIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryStore
from ebrank.typing import Floats

K, DAY, BEGIN = 10, 86400.0, 1e9
LOOKS = 1.0 / np.log2(np.arange(2, K + 2))

T = TypeVar("T")


class Shop:
    """A service in memory, with a clock that the benchmark sets."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.now = BEGIN
        self._rng = rng

    async def open(self, settings: Settings) -> Engine:
        """Return the service."""
        self.engine = await Engine.open(
            MemoryStore(), settings, clock=lambda: self.now, timer=lambda: self.now
        )
        return self.engine

    async def serve(self, request: RankRequest, name: str, relevance: Mapping[str, float]) -> float:
        """Serve a list, let a user click, and return the clicks to expect of its items."""
        answer = await self.engine.rank(request)
        chance = LOOKS * np.array([relevance[item.id] for item in answer.items])
        clicked = np.flatnonzero(self._rng.random(K) < chance).tolist()
        await self.engine.feedback(
            [
                EventIn(f"{name} {at}", answer.ranking_id, answer.items[at].id, "click")
                for at in clicked
            ]
        )
        return float(chance.sum())


def possible_clicks(relevance: Floats) -> float:
    """Return the clicks to expect of the best list of each query, in all; items come last."""
    best = np.sort(relevance, axis=-1)[..., ::-1][..., :K]
    return float((best @ LOOKS).sum())


def table(
    heads: str,
    spans: Mapping[str, tuple[int, int]],
    shares: Mapping[T, Floats],
    name: Callable[[T], str],
) -> str:
    """Return the means of spans of days as Markdown."""
    heads = f"| {heads} | {' | '.join(spans)} |"
    lines = [heads, "|" + "---|" * (heads.count("|") - 1)]
    for key, days in shares.items():
        means = [f"{days[begin:end].mean():.3f}" for begin, end in spans.values()]
        lines.append(f"| {name(key)} | {' | '.join(means)} |")
    return "\n".join(lines)


def main(
    about: str | None,
    measured: Callable[[], T],
    table: Callable[[T], str],
    plot: Callable[[T, Path], None],
) -> None:
    """Print the table, and draw it if a file is given."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    shares = measured()
    print(table(shares))
    if arguments.plot:
        plot(shares, arguments.plot)
