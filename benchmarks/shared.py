"""The lab's shop, served over HTTP: does a service gain from shared evidence what the lab does?

The worlds are those of `shop-like`, as in `ebrank reproduce --only shared`: Zipf traffic, half of
the items arrive during the run, an item is in about ten queries. A store on SQLite, three servers
on one PostgreSQL, asked in turn, and the engine alone, without HTTP and with a store in memory,
serve the same sessions with the default policy and with `shared=none`. A gain is the difference
between the two, in shares of the possible clicks.

`python -m benchmarks.shared [--worlds N] [--scale S] [--where engine]` takes some minutes per world
over HTTP, even at a tenth of the size; for the engine alone, half a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import cycle
from pathlib import Path
from uuid import uuid4

import numpy as np

import ebrank.lab.simulation.records
from benchmarks.figure import Figure, print_figures
from benchmarks.worlds import Served
from ebrank.client import Client
from ebrank.kernels import streams
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.data.loading import load
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.lab.simulation.play import phase, zipf
from ebrank.lab.simulation.result import SHARES
from ebrank.lab.simulation.world import item_times, new_world
from ebrank.paper.exhibits.shared import ALONE, AUTO, LENGTH, config_for
from ebrank.paper.framework.exhibit import Setup
from ebrank.service.api import EventIn, ItemIn, RankRequest, RankResponse
from ebrank.service.engine import Engine
from ebrank.service.ops import configuration
from ebrank.service.store.memory import MemoryStore
from ebrank.typing import Floats, Ints
from tests.postgres import postgres
from tests.service.scenes import Clock
from tests.serving import serving

WORLD, K = "shop-like:tau=1.2", LENGTH
FIRST_SEED = 871
SWITCHED_OFF = '[ranking]\npolicy = "auto:shared=none"\n'
WHERE = {"engine": 0, "SQLite": 1, "three servers": 3}
"""Servers, by where the shop is served."""
EACH_SECOND = 20
"""Lists in a second of the engine's own clock."""
WITHIN = 0.005
PATIENCE = 300.0
"""Seconds that a request may take: the machine may be busy."""


class ServedShop(Served):
    """A shop whose queries have names of items in common, served by some servers in turn."""

    def __init__(self, clients: Sequence[Client], data: Dataset) -> None:
        super().__init__(clients[0])
        self._clients, self._data = cycle(clients), data
        assert data.items is not None
        self._items = data.items

    def arrive(self, query: int, rows: Ints) -> None:
        """Put the items of some rows into their query."""
        items = {f"item-{self._items[row]}": self._data.features[row].tolist() for row in rows}
        self._client.put_items(f"query-{query}", items)

    def rank(self, query: int) -> tuple[Ints, object]:  # noqa: D102
        self._client = next(self._clients)
        return super().rank(query)


class EngineShop:
    """The same shop served by an engine in this process, with a clock of its own."""

    def __init__(self, data: Dataset, config: str) -> None:
        assert data.items is not None
        self._data, self._items, self._clock = data, data.items, Clock()
        self._runner, self._store = asyncio.Runner(), MemoryStore()
        settings = configuration.read(flags=tomllib.loads(config))
        opened = Engine.open(self._store, settings, clock=self._clock, timer=self._clock)
        self._engine = self._runner.run(opened)
        self._lists = 0

    def arrive(self, query: int, rows: Ints) -> None:
        """Put the items of some rows into their query."""
        items = [
            ItemIn(f"item-{self._items[row]}", self._data.features[row].tolist()) for row in rows
        ]
        self._runner.run(self._engine.put_items(f"query-{query}", items))

    def rank(self, query: int) -> tuple[Ints, object]:
        """Return the items of a list, and what tells it apart from others."""
        self._clock.now += 1.0 / EACH_SECOND
        self._lists += 1
        if self._lists % EACH_SECOND == 0:
            self._runner.run(self._tick())
        answer = self._runner.run(self._engine.rank(RankRequest(f"query-{query}", k=K)))
        return np.array([int(item.id.removeprefix("item-")) for item in answer.items]), answer

    async def _tick(self) -> None:
        """Do what a server does every second, and let training finish."""
        await self._engine._train_if_due()
        await self._engine._training.finished()
        await self._engine._share()

    def learn(self, query: int, served: Ints, clicked: Ints, ticket: object) -> None:
        """Take in which ranks of a list were clicked."""
        assert isinstance(ticket, RankResponse)
        names = [ticket.items[rank].id for rank in clicked.tolist()]
        events = [EventIn(uuid4().hex, ticket.ranking_id, name, "click") for name in names]
        if events:
            self._runner.run(self._engine.feedback(events))

    def close(self) -> None:
        """Stop the engine."""
        self._runner.run(self._engine.close())
        self._runner.run(self._store.close())
        self._runner.close()


def shares(shop: ServedShop | EngineShop, data: Dataset, seed: int) -> Floats:
    """Return the shares of the possible clicks, in the order of `result.SHARES`."""
    assert data.items is not None
    assert data.relevance is not None
    key, config = np.uint64(seed), config_of(data, seed)
    world, sessions = new_world(data, config, key), config.session_count(data)
    popularity = zipf(np.uint64(streams.child(key, streams.POPULARITY)), data.n_queries)
    asked, _ = phase(key, 0, sessions, data.n_queries, popularity)
    due, relevance = item_times(data, key, sessions), data.relevance[data.labels]
    order = np.argsort(due, kind="stable")
    p, minds = 1.0 / np.log2(np.arange(2, K + 2)), np.random.default_rng(seed)
    values, came = np.zeros(sessions), 0
    for time, query in enumerate(asked.tolist()):
        now = int(np.searchsorted(due[order], time, side="right"))
        arrived = order[came:now]
        for other in np.unique(data.query_of_rows[arrived]).tolist():
            shop.arrive(other, arrived[data.query_of_rows[arrived] == other])
        came = now
        rows = np.arange(data.n_rows)[data.rows_of(query)]
        row_of = {int(data.items[row]): row for row in rows.tolist()}
        served, ticket = shop.rank(query)
        chosen = np.array([row_of[item] for item in served.tolist()])
        worth = p[: len(chosen)] * relevance[chosen]
        clicked = np.flatnonzero(minds.random(K)[: len(chosen)] < worth)
        shop.learn(query, served, clicked, ticket)
        values[time] = worth.sum()
        world.late_dcg[query] += worth[due[chosen] >= 0].sum()
    return ebrank.lab.simulation.records.shares(world, asked, values / world.ideal[asked])


def served(data: Dataset, seed: int, config: str, *, servers: int) -> Floats:
    """Return the shares of a service: one server on SQLite, or several on one PostgreSQL.

    Without any server, an engine alone.
    """
    if servers == 0:
        with closing(EngineShop(data, config)) as shop:
            return shares(shop, data, seed)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        where = ["--store", stack.enter_context(postgres()).url("shop")] if servers > 1 else []
        addresses = [
            stack.enter_context(serving(Path(folder) / str(at), *where, config=config)).address
            for at in range(servers)
        ]
        clients = [stack.enter_context(Client(address, timeout=PATIENCE)) for address in addresses]
        return shares(ServedShop(clients, data), data, seed)


def config_of(data: Dataset, seed: int) -> SimulationConfig:
    """Return the experiment of `ebrank reproduce --only shared`."""
    return config_for(Setup(data, SimulationConfig(), seed), data)


def in_the_lab(data: Dataset, seed: int, ranker: str) -> Floats:
    """Return the shares of the lab in the same catalog, with sessions and users of its own."""
    result = run_trial(data, registry.parse(ranker), config_of(data, seed), seed, 0)
    assert result.shares is not None
    return result.shares


def gains(seed: int, scale: float, where: Sequence[str]) -> Iterator[tuple[str, Floats]]:
    """Yield what sharing gains in one world: in the lab, and over HTTP."""
    data = load(WORLD, scale=scale, seed=seed)
    with_, without = (
        np.mean([in_the_lab(data, 100 * seed + trial, ranker) for trial in range(10)], axis=0)
        for ranker in (AUTO, ALONE)
    )  # it takes no time, and one trial may be lucky
    yield "lab", with_ - without
    for name in where:
        with_, without = (
            served(data, seed, config, servers=WHERE[name]) for config in ("", SWITCHED_OFF)
        )
        yield name, with_ - without


def figures(
    worlds: int = 2,
    scale: float = 0.25,
    first: int = FIRST_SEED,
    where: Sequence[str] = tuple(WHERE),
) -> Iterator[Figure]:
    """Yield what sharing gains over HTTP, beside the lab; print the gains of each world."""
    by_world: list[dict[str, Floats]] = []
    for seed in range(first, first + worlds):
        by_world.append({})
        for name, gain in gains(seed, scale, where):
            by_world[-1][name] = gain
            print(seed, name, *(f"{share:+.4f}" for share in gain), file=sys.stderr, flush=True)
    for at, share in enumerate(SHARES):
        lab = np.array([gain["lab"][at] for gain in by_world])
        for name in where:
            ours = np.array([gain[name][at] for gain in by_world])
            more, error = (ours - lab).mean(), (ours - lab).std(ddof=1) / np.sqrt(worlds)
            yield Figure(
                f"{share}, {name}",
                f"{ours.mean():+.3f}, lab {lab.mean():+.3f}: {more:+.4f} ± {error:.4f}",
                f"≥ {-WITHIN:+.3f} by two standard errors",
                bool(more - 2.0 * error >= -WITHIN),
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=2)
    parser.add_argument("--scale", type=float, default=0.25)
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="seed of the first world")
    parser.add_argument("--where", choices=WHERE, nargs="+", default=tuple(WHERE))
    options = parser.parse_args()
    print_figures(figures(options.worlds, options.scale, options.first, options.where))
