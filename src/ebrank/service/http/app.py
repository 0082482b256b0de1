"""The service over HTTP: an ASGI application around an engine.

Endpoints are a table (`http.routes`). A request finds its route, is let in or not, is read, served
by the engine and answered; whatever goes wrong on the way is a `Problem` with a status.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from typing import TYPE_CHECKING

from ebrank.service.core.problems import Problem, Unavailable
from ebrank.service.http.access_log import AccessLog
from ebrank.service.http.admission import Admission
from ebrank.service.http.messages import Bodies, Gone, Receive, Scope, Send, header, page, send_page
from ebrank.service.http.metrics import Metrics
from ebrank.service.http.problems import Bug, HttpProblem, told
from ebrank.service.http.route import Page, Request, Router
from ebrank.service.http.routes import API
from ebrank.service.http.static import dashboard_routes
from ebrank.service.http.system import (
    Readiness,
    documentation_routes,
    health_routes,
    metrics_route,
)
from ebrank.service.settings import Settings
from ebrank.service.store.base import StoreError

if TYPE_CHECKING:
    from ebrank.service.core.engine import Engine


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
            if route.waits:  # asked now: the server may have begun to close since
                self.readiness.check_started()
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
            return _error(Bug("the server made a mistake; its log tells more"))
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
    body = page(told(problem))
    headers = problem.headers if isinstance(problem, HttpProblem) else {}
    return Page(body.content, body.media_type, problem.status, {**body.headers, **headers})
