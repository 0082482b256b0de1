"""Open connections: how many, for how long, and which to close when there are too many.

A connection that waits for its caller is of no use to others, so each kind of waiting has a time
limit. When a new caller comes and there is no room, the connection that has waited longest is
closed: first those whose last response was sent, then those without a request, those between two
requests, those that hold back a body, those that do not read their response. A request being served
is never cut off. So a caller that floods the server with connections displaces its own, and
`/healthz` keeps answering.

Everything happens on the event loop; nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
import math
import resource
import socket
import time
from collections import OrderedDict
from contextlib import suppress
from email.utils import formatdate
from typing import TYPE_CHECKING, Literal, TypeAlias

from uvicorn.config import Config
from uvicorn.server import ServerState

from ebrank.service.http import Message, Receive, Send
from ebrank.service.http.protocol import HttpConnection
from ebrank.service.settings import LimitsSettings

if TYPE_CHECKING:
    from ebrank.service.http.app import App

Waiting: TypeAlias = Literal["leaving", "head", "next", "body", "answer"]
"""What a connection waits for: that its caller hangs up, sends the head of a request, sends the
next request, sends a body, reads a response."""

LEAVE_SECONDS = 2.0
"""How long to discard a caller's input after a final response, so that it can read it."""
SWEEP_SECONDS = 0.5
ACCEPTED_AT_ONCE = 16
"""Connections accepted at once; other requests are served in between."""
BACKLOG = 1024
"""Connections that the system queues until they are accepted."""
NEVER = 10**6
"""Seconds."""
OTHER_FILES = 256
"""File descriptors left for everything else."""


class OpenConnections:
    """The open connections of a server.

    Args:
        app: serves requests, says what to send to those who send something else, and counts
            connections that were closed to keep the limits.
        limits: of connections.
    """

    def __init__(self, app: App, limits: LimitsSettings) -> None:
        self._app = app
        self.refusal = app.refusal
        app.metrics.connections = self
        self.state = ServerState()
        self.config = Config(
            self._serve,
            http=HttpConnection,
            interface="asgi3",
            ws="none",
            proxy_headers=False,  # anybody could send them
            lifespan="off",
            log_config=None,
            log_level="error",  # callers that send nonsense are counted, not logged
            access_log=False,
            timeout_keep_alive=NEVER,  # `idle_seconds` does that
        )
        self.config.load()
        self._most = min(limits.connections, _files_for(limits.connections))
        self._open: set[HttpConnection] = set()
        self._seconds: dict[Waiting, float] = {  # in the order in which they are closed
            "leaving": LEAVE_SECONDS,
            "head": limits.head_seconds,
            "next": limits.idle_seconds,
            "body": math.inf,  # the application watches it, and answers
            "answer": limits.answer_seconds,
        }
        self._waiting: dict[Waiting, OrderedDict[HttpConnection, float]] = {
            kind: OrderedDict() for kind in self._seconds
        }
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._date()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def closing(self) -> bool:
        """Whether no connection is kept for another request."""
        return self._server is None

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of every response."""
        return self.state.default_headers

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        connection: HttpConnection = scope["state"].pop("connection")
        await connection.serve(self._app, scope, receive, send)

    def _date(self) -> None:
        self.state.default_headers = [(b"date", formatdate(usegmt=True).encode())]

    async def listen(self, listening: socket.socket) -> None:
        """Accept connections from a listening socket."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: HttpConnection(self), sock=listening, backlog=ACCEPTED_AT_ONCE
        )
        listening.listen(BACKLOG)
        self._sweeper = asyncio.create_task(self._sweep())

    async def close(self, seconds: float) -> None:
        """Accept no more; wait this long for responses to be read, then close the rest."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        for connection in [*self._waiting["head"], *self._waiting["next"]]:
            connection.close()
        deadline = time.monotonic() + seconds
        while self._open and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self._open):
            connection.abort()

    def opened(self, connection: HttpConnection) -> None:
        """Count a connection, and close another if there are too many; or refuse it."""
        self._open.add(connection)
        if len(self._open) <= self._most:
            self.waits(connection, "head")
            return
        self._app.metrics.closed("full")
        for queue in self._waiting.values():
            if queue:
                longest = next(iter(queue))
                longest.abort()
                self.waits(connection, "head")
                return
        connection.abort()  # every other is being served

    def lost(self, connection: HttpConnection) -> None:
        """Forget a connection."""
        self._open.discard(connection)
        self.serves(connection)

    def waits(self, connection: HttpConnection, kind: Waiting) -> None:
        """Record what an open connection waits for from now on."""
        self.serves(connection)
        if connection not in self._open:
            return
        connection.waiting = kind
        self._waiting[kind][connection] = time.monotonic()

    def serves(self, connection: HttpConnection) -> None:
        """Record that a connection no longer waits for its caller."""
        if connection.waiting is not None:
            self._waiting[connection.waiting].pop(connection, None)
            connection.waiting = None

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = time.monotonic()
            self._date()
            for kind, queue in self._waiting.items():
                while queue and now - next(iter(queue.values())) > self._seconds[kind]:
                    self._expire(next(iter(queue)), kind)

    def _expire(self, connection: HttpConnection, kind: Waiting) -> None:
        if kind != "leaving":
            self._app.metrics.closed(kind)
        if kind == "head" and connection.began:
            connection.too_slow(self._seconds[kind])
        elif kind in ("head", "next"):
            connection.close()
        else:
            connection.abort()


def _files_for(connections: int) -> int:
    """Return how many connections the process may open, up to the number wanted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(soft - OTHER_FILES, 1)
