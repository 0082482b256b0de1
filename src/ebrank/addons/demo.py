"""`ebrank serve --demo`: the embedded dataset, simulated users, and items that keep arriving.

The users are a separate process that knows only the service's HTTP address. They click as the lab's
users do. An item's stars are its true relevance: users act on it, you see it in the name, and the
ranker, which ignores names, has to find it out.

>>> world = DemoWorld(ebrank.load("mq2007-like", scale=0.003), seed=1)
>>> query = world.asks(session=0)
>>> len(world.candidates(query)), world.arrival(0).enters.name
(30, '...')
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np

import ebrank
from ebrank.client import Client, ServiceError
from ebrank.equations import relevance_probability
from ebrank.evidence import Examination
from ebrank.kernels.streams import ARRIVALS, QUERIES, USERS, below, child, trial_key, uniform
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.simulation.users import position_based
from ebrank.service.api import EventIn
from ebrank.service.settings import Settings

SEED = 1
SCALE = 0.02  # about thirty queries
PRESENT = 30  # candidates of a query at a time
K = 10
SESSIONS_PER_SECOND = 100
SESSIONS_PER_STEP = 10  # whose clicks are sent together
SESSIONS_AT_ONCE = 1000  # as fast as they can: what was there before you looked
SESSIONS_PER_ARRIVAL = 100  # one item a second
SESSIONS_BEFORE_TRAINING = 1000  # then the first prior is fitted; later ones come by themselves


def demo_settings(given: Settings, folder: str) -> Settings:
    """Return settings with which something happens within a minute, with the store in a folder.

    The address and the store's settings are as given; everything else is the demo's.
    """
    own = Settings()
    return replace(
        own,
        server=replace(given.server, access_log=False),
        store=replace(given.store, url=folder),
        ranking=replace(own.ranking, k=K),
        features=replace(own.features, scaling="none"),  # the dataset's are scaled
        training=replace(own.training, every_seconds=0.0, after_events=30_000, after_growth=0.0),
        insights=replace(
            own.insights, new_seconds=30.0, refresh_seconds=2.0, bucket_seconds=2.0, demo=True
        ),
    )


def guide(address: str) -> str:
    """Return what to look at in the demo."""
    return (
        f"Simulated users search and click. Open {address}/ and watch\n"
        "  - items that are new: one arrives every second. Is it shown, and by clicks alone?\n"
        "  - what trying them costs in clicks, and which good ones it has found;\n"
        "  - the items of a query: stars are true relevance, known to users, not to the ranker;\n"
        "  - the first prior learned from clicks, after a few seconds.\n"
        "Ctrl-C ends it all and leaves nothing behind."
    )


# --- the world that users know ---------------------------------------------------------------


class Item(NamedTuple):
    """A row of the dataset under a name; each time it arrives it is new and has another name."""

    row: int
    number: int
    stars: int
    edition: int

    @property
    def name(self) -> str:
        """Its name in the service."""
        again = f"#{self.edition}" if self.edition > 1 else ""
        return " ".join(filter(None, (f"item {self.number}", "★" * self.stars, again)))


class ItemSwap(NamedTuple):
    """An item that enters a query, and the oldest one, which leaves."""

    query: str
    enters: Item
    leaves: Item


class DemoWorld:
    """Queries, their items, and what users think of them; the same seed gives the same world.

    The items of a query arrive in an order that is drawn, again and again. Only queries with more
    items than can be present at a time are used, so that there is always one to arrive.
    """

    def __init__(self, data: Dataset, seed: int) -> None:
        self.data = data
        self._key = trial_key(seed, 0)
        self._examination = Examination()  # the service's own curve: no rank is cut off
        self._relevance = relevance_probability(data.labels.astype(np.float64), data.max_label)
        wide = np.flatnonzero(data.candidates > PRESENT).tolist()
        self._orders = {f"query {data.query_ids[query]}": self._order(query) for query in wide}
        self.queries = list(self._orders)
        self._left = dict.fromkeys(self.queries, 0)

    def _order(self, query: int) -> list[tuple[int, int]]:
        """Return the rows of a query and their numbers, in the order of their arrival."""
        rows = self.data.rows_of(query)
        numbered = [(row, row - rows.start + 1) for row in range(rows.start, rows.stop)]
        return sorted(numbered, key=lambda each: uniform(self._at(ARRIVALS, 0, query, each[0])))

    def _at(self, *path: int) -> np.uint64:
        """Return the key of the draw at a path such as USERS / session / row."""
        key = self._key
        for index in path:
            key = np.uint64(child(key, index))
        return key

    def _item(self, query: str, place: int) -> Item:
        """Return the item that arrives at a place, from 0 on."""
        turn, place = divmod(place, len(self._orders[query]))
        row, number = self._orders[query][place]
        return Item(row, number, int(self.data.labels[row]), turn + 1)

    def candidates(self, query: str) -> list[Item]:
        """Return the current items of a query, oldest first."""
        left = self._left[query]
        return [self._item(query, place) for place in range(left, left + PRESENT)]

    def arrival(self, number: int) -> ItemSwap:
        """Let the next item arrive; arrivals are counted from 0."""
        query = self.queries[below(self._at(ARRIVALS, 1, number), len(self.queries))]
        left = self._left[query]
        self._left[query] += 1
        return ItemSwap(query, self._item(query, left + PRESENT), self._item(query, left))

    def asks(self, session: int) -> str:
        """Return what a session's user searches for."""
        return self.queries[below(self._at(QUERIES, session), len(self.queries))]

    def clicks(self, session: int, query: str, names: Sequence[str]) -> list[str]:
        """Return what this user clicks in a list: items examined and found relevant."""
        row_of = {item.name: item.row for item in self.candidates(query)}
        rows = [row_of[name] for name in names]
        minds = [uniform(self._at(USERS, session, row)) for row in rows]
        p = self._examination(np.arange(1, len(names) + 1)).tolist()
        outcomes = [0] * len(names)
        key = self._at(USERS, session)
        position_based(self._relevance[rows].tolist(), (), p, minds, len(names), key, outcomes)
        return [name for name, outcome in zip(names, outcomes, strict=True) if outcome]

    def features(self, items: Iterable[Item]) -> dict[str, list[float]]:
        """Return the features of items, as the service gets them."""
        return {item.name: self.data.features[item.row].tolist() for item in items}


# --- users and the service -------------------------------------------------------------------


def fill(client: Client, world: DemoWorld) -> None:
    """Give every query its first candidates."""
    for query in world.queries:
        client.put_items(query, world.features(world.candidates(query)))


def step(client: Client, world: DemoWorld, first: int) -> None:
    """Let some users search and click, then do whatever is due at their number."""
    events: list[EventIn] = []
    for session in range(first, first + SESSIONS_PER_STEP):
        query = world.asks(session)
        served = client.rank(query, k=K)
        for item in world.clicks(session, query, [item.id for item in served.items]):
            events.append(EventIn(f"{session} {item}", served.ranking_id, item, "click"))
    client.feedback(events)
    if first % SESSIONS_PER_ARRIVAL == 0:
        arrival = world.arrival(first // SESSIONS_PER_ARRIVAL)
        client.put_items(arrival.query, world.features([arrival.enters]))
        client.withdraw(arrival.query, arrival.leaves.name)
    if first == SESSIONS_BEFORE_TRAINING:
        client.train()


def visit(address: str) -> None:
    """Act as the users of a service until it is gone; after the first ones, a hundred a second."""
    world = DemoWorld(ebrank.load("mq2007-like", scale=SCALE), SEED)
    pause = SESSIONS_PER_STEP / SESSIONS_PER_SECOND
    with Client(address) as client:
        fill(client, world)
        for first in count(0, SESSIONS_PER_STEP):
            began = time.monotonic()
            step(client, world, first)
            if first >= SESSIONS_AT_ONCE:
                time.sleep(max(0.0, began + pause - time.monotonic()))


async def users(address: str) -> None:
    """Let users visit the service, in a process that ends when this is cancelled."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "ebrank.addons.demo", address),
        start_new_session=True,  # Ctrl-C is for the server, which then ends this
    )
    try:
        await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


if __name__ == "__main__":
    try:
        visit(sys.argv[1])
    except ServiceError as problem:
        sys.exit(f"the demo's users left: {problem}")
