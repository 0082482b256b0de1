"""The service over HTTP: an ASGI application around an engine.

It finds a request's route (`http.routes`), admits its caller or not (`http.admission`), reads the
body, lets the engine serve it, and sends the response. Whatever goes wrong is a `Problem` with a
status. A body is read only if the route takes one and the caller is admitted, within limits of size
and time, and of the size of all bodies together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from ebrank.service.core.problems import Problem
from ebrank.service.endpoints import ENDPOINTS, JSON, NDJSON, RANK, RERANK
from ebrank.service.http import Receive, Scope, Send
from ebrank.service.http.admission import Admission, Caller, header
from ebrank.service.http.metrics import Metrics
from ebrank.service.http.pages import Pages
from ebrank.service.http.problems import HttpProblem, error_response, unreadable
from ebrank.service.http.readiness import Readiness, starting
from ebrank.service.http.routes import Page, Route, Router
from ebrank.service.logs import about
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store.base import Conflict, StoreError

if TYPE_CHECKING:
    from ebrank.service.engine import Engine

UNCACHED = {"cache-control": "no-store"}

log = logging.getLogger("ebrank.service")

_ENCODER = msgspec.json.Encoder()
T = TypeVar("T")


class Seen:
    """What is known about a request so far."""

    route = ""
    caller = ""
    held = 0  # bytes of its body


class App:
    """An ASGI application; serves health and pages only until `readiness.started` is true."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.readiness = Readiness(engine)
        self.metrics = Metrics(engine)
        self._engine = engine
        self.admission = Admission(settings)
        self._bodies = Bodies(settings.limits)
        self._router = Router(ENDPOINTS)
        self._pages = Pages(self.readiness, self.metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is not served, only http")
        self.metrics.in_flight += 1
        seen, began = Seen(), time.perf_counter()
        try:
            answer = await self._answer(scope, receive, seen)
            headers, body = answer.encoded(), b"" if scope["method"] == "HEAD" else answer.content
            start = {"type": "http.response.start", "status": answer.status, "headers": headers}
            await send(start)
            await send({"type": "http.response.body", "body": body})
            seconds = time.perf_counter() - began
            self.metrics.answered(scope["method"], seen.route, answer.status, seconds, seen.caller)
        except Gone:
            return
        finally:
            self.metrics.in_flight -= 1
            self._bodies.free(seen.held)

    async def _answer(self, scope: Scope, receive: Receive, seen: Seen) -> Page:
        try:
            answer = await self._served(scope, receive, seen)
        except Problem as problem:
            return _error(problem)
        except Conflict as problem:
            return _error(HttpProblem(409, str(problem)))
        except StoreError as problem:
            self._engine.failures.add(problem)
            return _error(HttpProblem(503, str(problem)))
        except Gone:
            raise
        except Exception:
            # Ours, not the caller's: the log gets the details, the caller gets none.
            log.exception("a request failed; this is a bug", extra=about("bug", route=seen.route))
            return _error(HttpProblem(500, "internal error; see the server's log"))
        if isinstance(answer, Page):
            return answer
        self.metrics.served(answer)
        return Page(_ENCODER.encode(answer), headers=UNCACHED)

    async def _served(self, scope: Scope, receive: Receive, seen: Seen) -> object:
        """Return what the endpoint of a request returns."""
        caller = self.admission.caller(scope)
        seen.caller = caller.name
        route, parts = self._router.find(scope["method"], _raw_path(scope))
        endpoint = route.endpoint
        seen.route = endpoint.path
        self.admission.admit(caller, scope, endpoint)
        given = [*route.names(parts), *route.options(scope.get("query_string", b""))]
        if endpoint.reads is not None:
            given.append(await self._body(route, scope, receive, seen))
        if endpoint in (RANK, RERANK):
            given += self._who(caller)
        if endpoint.waits and not self.readiness.started:  # it may have begun to close since
            raise starting()
        serve = getattr(self._pages, route.name, None) or getattr(self._engine, route.name)
        return await serve(*given)

    async def _body(self, route: Route, scope: Scope, receive: Receive, seen: Seen) -> Any:  # noqa: ANN401 (as the endpoint reads it)
        """Return the content of a request's body; that of a large one takes a while to read."""
        _check_encoding(scope)
        if route.endpoint.accepts == NDJSON:
            return self._bodies.pieces(receive)
        content = route.data(await self._bodies.read(scope, receive, seen))
        if not isinstance(content, Iterator):
            return content
        whole: list[object] = []
        async with self._engine.turns as turns:
            try:
                for portion in content:
                    whole += portion
                    await turns.next()
            except msgspec.DecodeError as problem:
                raise unreadable(problem) from None
        return whole

    def _who(self, caller: Caller) -> list[Any]:
        """Return how the engine asks whether a caller may create a query, and for the log, who."""
        token = None if caller.token is None else caller.token.name
        return [partial(self.admission.admit_query, caller), token]


def _raw_path(scope: Scope) -> bytes:
    """Return the path below where the application is mounted, as it was sent.

    `path` is decoded, which would lose slashes in names; not every server sends the other one.
    """
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    root = scope.get("root_path")
    return raw.removeprefix(quote(root).encode()) if root else raw


def _check_encoding(scope: Scope) -> None:
    encoding = header(scope, b"content-encoding")
    if encoding is not None and encoding.lower() != "identity":
        raise HttpProblem(
            415,
            f"the body is encoded ({encoding}); send it as it is, without Content-Encoding",
            headers={"accept-encoding": "identity"},
        )


def _error(problem: Problem) -> Page:
    own = problem.headers if isinstance(problem, HttpProblem) else {}
    body = _ENCODER.encode(error_response(problem))
    return Page(body, JSON, problem.status, {**UNCACHED, **own})


class Gone(Exception):
    """The caller has disconnected."""


class Bodies:
    """Reads the bodies of requests, within limits of size and time, and of all together."""

    def __init__(self, limits: LimitsSettings) -> None:
        self._limit = limits.body_bytes
        self._most_held = max(limits.bodies_bytes, limits.body_bytes)
        self._seconds = limits.body_seconds
        self._held = 0

    async def read(self, scope: Scope, receive: Receive, seen: Seen) -> bytes:
        """Return the body of a request; it counts as held until it is freed.

        Raises:
            HttpProblem: 413 if it is longer than the limit; the rest is not read.
            HttpProblem: 408 if it does not arrive in time.
            HttpProblem: 503 if others hold too much.
            Gone: if the caller leaves before its end.
        """
        announced = header(scope, b"content-length") or "0"
        if not announced.isdecimal():
            raise HttpProblem(400, "content-length is not a number")
        self._check_size(int(announced))
        return await self._in_time(self._whole(receive, seen))

    async def _whole(self, receive: Receive, seen: Seen) -> bytes:
        pieces: list[bytes] = []
        more = True
        while more:
            piece, more = await _piece(receive)
            pieces.append(piece)
            seen.held += len(piece)
            self._held += len(piece)
            self._check_size(seen.held)
            if self._held > self._most_held:
                full = "all request bodies together exceed limits.bodies_bytes; try again"
                raise HttpProblem(503, full, headers={"retry-after": "1"})
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def pieces(self, receive: Receive) -> AsyncIterator[bytes]:
        """Yield a body as it arrives; none of it is held, so it may have any length.

        Raises:
            HttpProblem: 408 if the next piece does not come in time.
            Gone: if the caller leaves before its end.
        """
        more = True
        while more:
            piece, more = await self._in_time(_piece(receive))
            yield piece

    def free(self, count: int) -> None:
        """Release this many bytes."""
        self._held -= count

    async def _in_time(self, waiting: Awaitable[T]) -> T:
        """Return what a caller sends, unless that takes too long."""
        try:
            async with asyncio.timeout(self._seconds):
                return await waiting
        except TimeoutError:
            late = f"the body was not sent within {self._seconds:g} s"
            raise HttpProblem(408, late, headers={"connection": "close"}) from None

    def _check_size(self, count: int) -> None:
        if count > self._limit:
            message = f"the body has more than {self._limit:,} bytes; send it in parts"
            raise HttpProblem(413, message)


async def _piece(receive: Receive) -> tuple[bytes, bool]:
    """Return the next piece of a body, and whether more follow."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    return message.get("body", b""), message.get("more_body", False)
