"""The service over HTTP: an ASGI application around an engine.

A request's body is read within a limit of size and time, its route is found (`http.routes`), its
caller let in or not (`http.admission`), the engine serves it, and the answer is sent. Whatever goes
wrong on the way is a `Problem` with a status.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ebrank.service.core.problems import Problem
from ebrank.service.http.admission import Admission, Scope, header
from ebrank.service.http.metrics import AccessLog, Metrics
from ebrank.service.http.problems import (
    BadRequest,
    Bug,
    HttpProblem,
    TooLarge,
    TooSlow,
    Unavailable,
    error_response,
)
from ebrank.service.http.routes import API, JSON, Page, Request, Router
from ebrank.service.http.static import dashboard_routes
from ebrank.service.http.system import (
    Readiness,
    documentation_routes,
    health_routes,
    metrics_route,
    starting,
)
from ebrank.service.settings import Settings
from ebrank.service.store.base import StoreError

if TYPE_CHECKING:
    from ebrank.service.core.engine import Engine

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every answer; a page may have its own policy."""

BODY_SECONDS = 30.0
"""How long a caller may take to send a body; a connection must not be held forever."""
LAST_SECONDS = 1.0
"""The same while the server closes."""
CLOSE = {"connection": "close"}
"""Of an answer that leaves before its request was read: what follows is not a new request."""

_ENCODER = msgspec.json.Encoder()


class App:
    """An ASGI application; serves health and pages only until `readiness.started` is true."""

    def __init__(self, engine: Engine, settings: Settings, *, log: AccessLog | None = None) -> None:
        self.readiness = Readiness(engine)
        self.metrics = Metrics(log, engine)
        self._engine = engine
        self._admission = Admission(settings)
        self._bodies = Bodies(settings.limits.body_bytes)
        documented = [
            *API,
            *health_routes(self.readiness),
            metrics_route(self.metrics),
        ]
        self.router = Router([*documented, *documentation_routes(documented), *dashboard_routes()])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is not served, only http")
        began = time.perf_counter()
        self.metrics.in_flight += 1
        seen = _Seen()
        try:
            answer = await self._answer(scope, receive, seen)
            await send_page(send, answer, with_body=scope["method"] != "HEAD")
            seconds = time.perf_counter() - began
            self.metrics.answered(scope["method"], seen.route, answer.status, seconds, seen.caller)
        except Gone:
            return
        finally:
            self.metrics.in_flight -= 1

    async def drained(self, seconds: float) -> None:
        """Return when no request is being served any more, or after so many seconds."""
        self.readiness.started = False
        self._bodies.give_up()
        deadline = time.monotonic() + seconds
        while self.metrics.in_flight and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    async def _answer(self, scope: Scope, receive: Receive, seen: _Seen) -> Page:
        try:
            caller = self._admission.caller(scope)
            seen.caller = caller.name
            route, parts = self.router.find(scope["method"], _raw_path(scope))
            seen.route = route.path
            self._admission.admit(caller, scope, route)
            names, body = route.names(parts), await self._bodies.read(scope, receive)
            if route.waits and not self.readiness.started:  # it may have begun to close since
                raise starting()
            host = header(scope, b"host") or ""
            answer = await route.handle(Request(self._engine, names, route.data(body), host))
        except Problem as problem:
            return _error(problem)
        except StoreError as problem:
            return _error(Unavailable(str(problem)))
        except Gone:
            raise
        except Exception:
            # Ours, not the caller's: the log gets the details, the caller gets none.
            traceback.print_exc(file=sys.stderr)
            return _error(Bug("the server made a mistake; see its log"))
        self.metrics.served(answer)
        return page(answer)


class _Seen:
    """What is known of a request for the log, as far as it came."""

    route = ""
    caller = ""


def _raw_path(scope: Scope) -> bytes:
    """Return the path as it was sent; `path` is decoded, which would lose slashes in names."""
    raw: bytes | None = scope.get("raw_path")
    return (raw or scope["path"].encode()).partition(b"?")[0]


def _error(problem: Problem) -> Page:
    body = page(error_response(problem))
    headers = problem.headers if isinstance(problem, HttpProblem) else {}
    return Page(body.content, body.media_type, problem.status, {**body.headers, **headers})


class Gone(Exception):
    """The caller has left; there is nobody to answer."""


class Bodies:
    """Reads the bodies of requests, within a size and a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waits: set[asyncio.Timeout] = set()
        self._closing = False

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request.

        Raises:
            TooLarge: if it is longer than the limit; the rest is not read.
            TooSlow: if it is not there in time.
            Unavailable: if it is not there when the server closes.
            Gone: if the caller leaves before its end.
        """
        announced = header(scope, b"content-length") or "0"
        if not announced.isdecimal():
            raise BadRequest("content-length is not a number")
        if int(announced) > self._limit:
            raise self._too_large()
        wait = asyncio.timeout(LAST_SECONDS if self._closing else BODY_SECONDS)
        self._waits.add(wait)
        try:
            async with wait:
                return await self._received(receive)
        except TimeoutError:
            raise self._too_slow() from None
        finally:
            self._waits.remove(wait)

    def give_up(self) -> None:
        """Hardly wait for bodies any more: one that never comes would hold up the server."""
        self._closing = True
        last = asyncio.get_running_loop().time() + LAST_SECONDS
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(last)

    async def _received(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            body += message.get("body", b"")
            if len(body) > self._limit:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_slow(self) -> HttpProblem:
        if self._closing:
            return Unavailable("the server is closing", headers={"retry-after": "1", **CLOSE})
        return TooSlow(f"the body was not sent within {BODY_SECONDS:g} s", headers=CLOSE)

    def _too_large(self) -> HttpProblem:
        return TooLarge(
            f"the body has more than {self._limit:,} bytes; send it in parts", headers=CLOSE
        )


def page(answer: object) -> Page:
    """Return an answer as it is sent: structs become JSON."""
    if isinstance(answer, Page):
        return answer
    return Page(_ENCODER.encode(answer), JSON, headers={"cache-control": "no-store"})


async def send_page(send: Send, answer: Page, *, with_body: bool) -> None:
    """Send an answer; its body is left out for HEAD."""
    headers: Mapping[str, str] = {
        **SAFE,
        "content-type": answer.media_type,
        "content-length": str(len(answer.content)),
        **answer.headers,
    }
    encoded = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": answer.content if with_body else b""})
