"""The service over HTTP: an ASGI application around an engine.

It finds a request's route (`http.routes`), admits its caller or not (`http.admission`), reads the
body, lets the engine serve it, and sends the response. Whatever goes wrong is a `Problem` with a
status. A body is read only if the route takes one and the caller is admitted, within limits of size
and time, and of the size of all bodies together.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
import time
from collections.abc import AsyncIterator, Awaitable
from functools import cache, partial
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from ebrank.service import api
from ebrank.service.core.problems import Problem
from ebrank.service.http import Receive, Scope, Send, openapi
from ebrank.service.http.admission import SCOPES, Admission, header
from ebrank.service.http.metrics import CONTENT_TYPE, Metrics
from ebrank.service.http.problems import HttpProblem, error_response
from ebrank.service.http.readiness import Readiness, starting
from ebrank.service.http.routes import API, JSON, Page, Request, Route, Router, endpoint
from ebrank.service.logs import about
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store.base import Conflict, StoreError

if TYPE_CHECKING:
    from ebrank.service.engine import Engine

UNCACHED = {"cache-control": "no-store"}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A page may load its own files and ask this server, nothing else, and run no inline script."""

HTML = "text/html; charset=utf-8"

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
        self.metrics = Metrics(engine, self.readiness)
        self._engine = engine
        self.admission = Admission(settings)
        self._bodies = Bodies(settings.limits)
        self.router = Router(all_routes(self.readiness, self.metrics))

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
            caller = self.admission.caller(scope)
            seen.caller = caller.name
            route, parts = self.router.find(scope["method"], _raw_path(scope))
            seen.route = route.path
            self.admission.admit(caller, scope, route)
            names, options = route.names(parts), route.options(scope.get("query_string", b""))
            body = b""
            if route.reads is not None:
                _check_encoding(scope)
                if not route.streams:
                    body = await self._bodies.read(scope, receive, seen)
            if route.waits and not self.readiness.started:  # it may have begun to close since
                raise starting()
            host = header(scope, b"host") or ""
            data = self._bodies.pieces(receive) if route.streams else route.data(body)
            admit_query = partial(self.admission.admit_query, caller)
            token = None if caller.token is None else caller.token.name
            request = Request(self._engine, names, data, admit_query, host, options, token)
            answer = await route.handle(request)
        except Problem as problem:
            return _error(problem)
        except Conflict as problem:
            return _error(HttpProblem(409, str(problem)))
        except StoreError as problem:
            self.readiness.failed(problem)
            return _error(HttpProblem(503, str(problem)))
        except Gone:
            raise
        except Exception:
            # Ours, not the caller's: the log gets the details, the caller gets none.
            log.exception("a request failed; this is a bug", extra=about("bug", route=seen.route))
            return _error(HttpProblem(500, "internal error; see the server's log"))
        if self.readiness.troubled:
            self.readiness.served(answer)
        self.metrics.served(answer)
        return page(answer)


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
                told = "all request bodies together exceed limits.bodies_bytes; try again"
                raise HttpProblem(503, told, headers={"retry-after": "1"})
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


def page(answer: object) -> Page:
    """Return a response as it is sent: structs become JSON."""
    if isinstance(answer, Page):
        return answer
    return Page(_ENCODER.encode(answer), JSON, headers=UNCACHED)


# --- health, metrics, documentation, and the dashboard -------------------------------------------


def all_routes(readiness: Readiness, metrics: Metrics) -> list[Route]:
    """Return the routes of the API, and all others.

    The dashboard's files are read once from the package, so that no URL can reach another file.
    """
    routes = [*API]
    serve = partial(endpoint, "GET", among=routes, waits=False)
    folder = resources.files("ebrank.service") / "dashboard"
    files = {
        file.name: _file(file.name, file.read_bytes())
        for file in folder.iterdir()
        if file.is_file()
    }

    @serve("/healthz")
    async def healthz(call: Request) -> api.Health:
        """Respond if the process is alive. Restart it if it does not respond."""
        return api.Health("ok")

    @serve("/readyz", errors=(503,))
    async def readyz(call: Request) -> api.Health:
        """Say whether requests can be served: 503 while starting, while closing, and while the
        store fails. It is tried once a second, and the outcome of requests counts too.
        """
        await readiness.check()
        return api.Health("ready", readiness.store)

    @serve("/metrics", *SCOPES)
    async def prometheus(call: Request) -> Page:
        """Return counters and latencies in the text format of Prometheus."""
        return Page(metrics.text(), CONTENT_TYPE)

    @cache  # made on first use, in a thread: servers start sooner without, and lists do not wait
    def document() -> dict[str, Any]:
        return openapi.document(routes)

    @serve("/openapi.json", hidden=True)
    async def openapi_document(call: Request) -> Page:
        """Return the OpenAPI document."""
        return Page(msgspec.json.encode(await asyncio.to_thread(document)), JSON)

    @serve("/docs", hidden=True)
    async def documentation(call: Request) -> Page:
        """Show the documentation."""
        shown = openapi.page(await asyncio.to_thread(document), call.host or "127.0.0.1:8000")
        return Page(shown.encode(), HTML, headers={"content-security-policy": POLICY})

    @serve("/docs.css", hidden=True)
    async def documentation_style(call: Request) -> Page:
        """Return the style of the documentation."""
        return Page(openapi.STYLE, "text/css; charset=utf-8")

    @serve("/", hidden=True)
    async def dashboard(call: Request) -> Page:
        """Show the dashboard."""
        return files["index.html"]

    @serve("/dashboard/{file}", hidden=True)
    async def dashboard_file(call: Request) -> Page:
        """Return a file of the dashboard."""
        if call.names["file"] not in files:
            raise HttpProblem(404, "the dashboard has no such file")
        return files[call.names["file"]]

    return routes


def _file(name: str, content: bytes) -> Page:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if kind.startswith("text/") or kind.endswith("javascript"):
        kind += "; charset=utf-8"
    headers = {
        "content-security-policy": POLICY,
        "cache-control": "no-cache",
        "etag": f'"{sha256(content).hexdigest()[:16]}"',
    }
    return Page(content, kind, headers=headers)
