"""Servers on one database that are killed at random, and the proof that they kept their word.

Clients ask for lists and click on them, through whichever server answers; each notes the clicks
that were acknowledged. Meanwhile servers are killed and started again, and now and then the
database is stopped at once. In the end every acknowledged click is in the log, none is there twice,
and a replay of the log gives the counters.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import httpx

from ebrank.service.ops.replay import replay
from ebrank.service.store import open
from ebrank.service.store.records import EventEntry
from tests.postgres import Postgres
from tests.serving import Server
from tests.threaded import Threaded

QUERIES = 5
CLIENTS = 3
AnyServer: TypeAlias = Server | Threaded
QUIET = "[training]\nafter_events = 0\nevery_seconds = 0\n"


@dataclass
class Outcome:
    """What clients were told, and how often they were told nothing.

    Attributes:
        acknowledged: names of clicks.
        lists: how many were served.
        failed: requests without a good answer, all of which were sent again.
        kills: of servers, and of the database.
    """

    acknowledged: set[str] = field(default_factory=set)
    lists: int = 0
    failed: int = 0
    kills: tuple[int, int] = (0, 0)


def fleet(folder: Path, url: str, size: int, config: str = QUIET) -> list[Server]:
    """Return servers that run on one database."""
    where = ("--store", url)
    servers = [Server(folder / str(number), *where, config=config) for number in range(size)]
    try:
        with ThreadPoolExecutor(size) as threads:
            list(threads.map(Server.start, servers))
    except BaseException:
        for server in servers:
            server.kill()
        raise
    return servers


def put_items(server: AnyServer) -> None:
    """Give each query some candidates."""
    items = [{"id": f"i{place}", "features": [place / 10]} for place in range(8)]
    for query in range(QUERIES):
        answer = httpx.put(f"{server.url}/v1/queries/q{query}/items", json={"items": items})
        assert answer.status_code == 200, answer.text


async def survive(
    database: Postgres,
    servers: Sequence[Server],
    kills: int,
    *,
    pause: float = 0.5,
    reading: float = 0.0,
) -> Outcome:
    """Kill servers, and at every fifth turn the database; return what clients were told.

    Args:
        database: of all servers.
        servers: are there again in the end.
        kills: how many.
        pause: most seconds between two kills.
        reading: seconds that a client takes between two lists.
    """
    outcome, done, chance = Outcome(), asyncio.Event(), random.Random(1)
    send = _anywhere(servers, outcome, random.Random(0))
    clients = [
        asyncio.create_task(_client(name, send, outcome, done, reading, patience=60.0))
        for name in range(CLIENTS)
    ]
    crashes = 0
    for turn in range(kills):
        await asyncio.sleep(chance.uniform(0.0, pause))
        if turn % 5 == 4:
            await asyncio.to_thread(_crash, database)
            crashes += 1
        else:
            await asyncio.to_thread(_restart, chance.choice(servers))
    await asyncio.sleep(pause)
    done.set()
    await asyncio.gather(*clients)
    outcome.kills = kills - crashes, crashes
    return outcome


def _crash(database: Postgres) -> None:
    database.stop("immediate")
    database.start()


def _restart(server: Server) -> None:
    server.kill()
    server.start()


Send: TypeAlias = Callable[[httpx.AsyncClient, str, object], Awaitable[Any]]
"""Sends a request, and returns the answer; None if there was no good one."""


async def _client(
    name: int, send: Send, outcome: Outcome, done: asyncio.Event, reading: float, patience: float
) -> None:
    """Ask for a list and click on it, again and again; send a click again as long as it fails."""
    chance, turn = random.Random(name), 0
    without_keeping = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(verify=False, timeout=30.0, limits=without_keeping) as http:
        while not done.is_set():
            turn += 1
            await asyncio.sleep(reading)
            query = {"query": f"q{chance.randrange(QUERIES)}", "k": 4}
            served = await send(http, "/v1/rank", query)
            if served is None or "counted" in served:
                continue
            outcome.lists += 1
            event = {
                "event_id": f"e{name}-{turn}",
                "ranking_id": served["ranking_id"],
                "item": chance.choice(served["items"])["id"],
                "type": "click",
            }
            deadline = time.monotonic() + patience
            while True:
                answer = await send(http, "/v1/feedback", {"events": [event]})
                if answer is not None or time.monotonic() >= deadline:
                    break
            # A list that a crash took along is unknown, and its click does not count.
            if answer is not None and answer["results"][0]["status"] != "rejected":
                outcome.acknowledged.add(event["event_id"])


def _anywhere(servers: Sequence[AnyServer], outcome: Outcome, chance: random.Random) -> Send:
    """Return what sends a request to some server, which may be down."""

    async def sent(http: httpx.AsyncClient, path: str, body: object) -> Any:  # noqa: ANN401 (JSON)
        try:
            answer = await http.post(chance.choice(servers).url + path, json=body)
        except httpx.TransportError:
            answer = None
        if answer is not None and answer.status_code == 200:
            return answer.json()
        assert answer is None or answer.status_code == 503, answer.text
        outcome.failed += 1
        await asyncio.sleep(0.02)
        return None

    return sent


class Balancer:
    """Sends each request to the next server that is ready, once; what then fails has failed.

    Attributes:
        failed: what was wrong with requests.
        answered: how many were answered well.
    """

    def __init__(self, servers: Sequence[AnyServer], probe_seconds: float = 0.1) -> None:
        self._servers = servers
        self._ready = list(servers)
        self._probe_seconds = probe_seconds
        self._turn = 0
        self.failed: list[str] = []
        self.answered = 0

    async def probe(self, done: asyncio.Event) -> None:
        """Find out again and again who is ready."""
        async with httpx.AsyncClient(verify=False, timeout=5.0) as http:
            while not done.is_set():
                ready = await asyncio.gather(*(self._is_ready(http, s) for s in self._servers))
                self._ready = [s for s, yes in zip(self._servers, ready, strict=True) if yes]
                await asyncio.sleep(self._probe_seconds)

    async def _is_ready(self, http: httpx.AsyncClient, server: AnyServer) -> bool:
        try:
            return (await http.get(f"{server.url}/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    async def sent(self, http: httpx.AsyncClient, path: str, body: object) -> Any:  # noqa: ANN401
        """Return the answer of a server, None if there is none or it is not a good one."""
        self._turn += 1
        try:
            server = self._ready[self._turn % len(self._ready)]
            answer = await http.post(server.url + path, json=body)
            answer.raise_for_status()
        except (ZeroDivisionError, httpx.HTTPError) as problem:
            self.failed.append(f"{path}: {problem!r}")
            return None
        self.answered += 1
        return answer.json()


async def restart_in_turn(servers: Sequence[AnyServer], reading: float) -> tuple[Balancer, Outcome]:
    """Restart each server while clients are served, and return what became of them."""
    balancer, outcome, done = Balancer(servers), Outcome(), asyncio.Event()

    tasks = [asyncio.create_task(balancer.probe(done))]
    tasks += [
        asyncio.create_task(_client(name, balancer.sent, outcome, done, reading, patience=0.0))
        for name in range(CLIENTS)
    ]
    for server in servers:
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        await asyncio.sleep(0.5)
    done.set()
    await asyncio.gather(*tasks)
    return balancer, outcome


async def check(url: str, outcome: Outcome) -> int:
    """Return how many clicks were counted; raise if one was lost or counted twice."""
    async with open(url, "read") as store:
        report = await replay(store)
        assert report.equal, report.differences
        entries = [entry async for entry in store.log.entries()]
        clicks = [entry.event_id for entry in entries if isinstance(entry, EventEntry)]
        assert len(set(clicks)) == len(clicks), "a click stands in the log twice"
        missing = outcome.acknowledged - set(clicks)
        assert not missing, f"acknowledged, and lost: {sorted(missing)[:3]}"
        states = [await store.items.load(query) for query in await store.items.queries()]
        counted = sum(int(state.counts[:, 1].sum()) for state in states if state is not None)
        assert counted == len(clicks)
        for state in states:
            assert state is not None
            assert (state.counts[:, 1] <= state.counts[:, 0]).all(), "more clicks than impressions"
        return counted
