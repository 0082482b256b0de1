"""The servers of a store: each announces itself every few seconds, and learns of the others.

This only affects what people see: `GET /v1/insights`, the dashboard and metrics. The store's
elections assign the work that one server does for all. Every server stands for election whenever it
announces itself; so a lost one is replaced within seconds.

>>> import asyncio
>>> from ebrank.service.store.memory import MemoryStore
>>> counts = dict.fromkeys(("events", "from_memory", "from_store", "stale"), 0)
>>> async def session() -> None:
...     about = {"model": 7, "lists": 3, "clock_lag": 0.0, "rules": {}, **counts}
...     fleet = Fleet(MemoryStore(), lambda: about)
...     await fleet.beat()
...     [server] = await fleet.servers()
...     print(server.model, server.lists, server.jobs)
...     await fleet.leave()
...     print(await fleet.servers())
>>> asyncio.run(session())
7 3 ['train', 'roll up']
[]
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

import ebrank
from ebrank.service import api
from ebrank.service.store.base import Store

BEAT_SECONDS = 3.0
PRESENT_SECONDS = 4 * BEAT_SECONDS
"""A server that has been silent for this long may have been killed."""
JOBS = TRAINER, ROLLER = "train", "roll up"
"""Jobs that one server does for all."""


class Fleet:
    """This server among those that share its store.

    Attributes:
        size: how many servers there were at the last announcement.
        jobs: what this one does for all.
        store_seconds: how long the store took for the last announcement.
    """

    def __init__(self, store: Store, about: Callable[[], Mapping[str, Any]]) -> None:
        """Take what returns the fields of `api.ServerOut` that the engine knows."""
        self._store = store
        self._about = about
        self._id = secrets.token_hex(8)
        self._started = time.time()
        self.size = 1
        self.jobs: list[str] = []
        self.store_seconds = 0.0

    async def beat(self) -> None:
        """Stand for election, and announce this server."""
        self.jobs = [job for job in JOBS if await self._store.elected(job)]
        began = time.perf_counter()
        await self._store.announce(self._id, msgspec.json.encode(self._out()).decode())
        self.store_seconds = time.perf_counter() - began
        self.size = len(await self._store.servers())

    async def leave(self) -> None:
        """Announce that this server leaves."""
        await self._store.announce(self._id, None)

    async def servers(self) -> list[api.ServerOut]:
        """Return all servers, the oldest first."""
        return await servers(self._store, self._id)

    def _out(self) -> api.ServerOut:
        return api.ServerOut(
            name=f"{socket.gethostname()}-{os.getpid()}",
            version=ebrank.__version__,
            started=self._started,
            jobs=self.jobs,
            store_ms=self.store_seconds * 1e3,
            **self._about(),
        )


async def servers(store: Store, asked: str = "") -> list[api.ServerOut]:
    """Return the servers of a store, given which of them answers.

    Servers of another version of ebrank, which report other things, are left out.
    """
    heard = []
    for announced in await store.servers():
        with suppress(msgspec.DecodeError):
            server = msgspec.json.decode(announced.about, type=api.ServerOut)
            seen, answers = announced.seconds, announced.server == asked
            heard.append(msgspec.structs.replace(server, seen_seconds=seen, answers=answers))
    return sorted(heard, key=lambda server: (server.started, server.name))


async def running(store: Store) -> list[api.ServerOut]:
    """Return the servers of a store that have not been silent for long."""
    return [server for server in await servers(store) if server.seen_seconds <= PRESENT_SECONDS]
