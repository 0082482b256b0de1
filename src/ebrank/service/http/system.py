"""What operators and programs ask about the server itself: health, metrics, documentation."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ebrank.service.http import docs, openapi
from ebrank.service.http.admission import SCOPES
from ebrank.service.http.metrics import CONTENT_TYPE, Metrics
from ebrank.service.http.problems import Unavailable
from ebrank.service.http.routes import JSON, Page, Request, Route
from ebrank.service.http.static import html_page
from ebrank.service.store.base import StoreError

if TYPE_CHECKING:
    from ebrank.service.core.engine import Engine


TRY_SECONDS = 1.0


class Health(msgspec.Struct, frozen=True):
    """How the server is."""

    status: str


class Readiness:
    """Whether requests can be served, which includes writing to the store.

    Anybody may ask, so the store is tried once a second at most.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tried = -math.inf
        self._problem: Unavailable | None = None
        self.started = False

    async def check(self) -> None:
        """Raise a problem if a request could not be served."""
        if not self.started:
            raise starting()
        if time.monotonic() - self._tried > TRY_SECONDS:
            self._tried, self._problem = time.monotonic(), None
            try:
                await self._engine.check()
            except StoreError as problem:
                self._problem = Unavailable(str(problem))
        if self._problem is not None:
            raise self._problem


def starting() -> Unavailable:
    """Return the problem with a request that comes while the server starts or closes."""
    return Unavailable("the server is starting or closing", headers={"retry-after": "1"})


def health_routes(readiness: Readiness) -> list[Route]:
    """Return liveness and readiness."""

    async def healthz(call: Request) -> Health:
        """Answer if the process lives. Restart it if it does not answer."""
        return Health("ok")

    async def readyz(call: Request) -> Health:
        """Answer if requests can be served: 503 while starting, while closing, and while the
        store cannot be written.
        """
        await readiness.check()
        return Health("ready")

    return [
        Route("GET", "/healthz", healthz, gives=Health, waits=False),
        Route("GET", "/readyz", readyz, gives=Health, waits=False, errors=(503,)),
    ]


def metrics_route(metrics: Metrics) -> Route:
    """Return the page that Prometheus reads."""

    async def prometheus(call: Request) -> Page:
        """Return counters and latencies in the text format of Prometheus."""
        return Page(metrics.text(), CONTENT_TYPE)

    return Route("GET", "/metrics", prometheus, scopes=SCOPES, waits=False)


def documentation_routes(routes: Iterable[Route]) -> list[Route]:
    """Return the OpenAPI document of these routes and a page that shows it."""
    shown = openapi.document(routes)
    document = msgspec.json.encode(shown)
    style = Page(docs.STYLE.encode(), "text/css; charset=utf-8")

    async def openapi_document(call: Request) -> Page:
        """Return the OpenAPI document."""
        return Page(document, JSON)

    async def documentation(call: Request) -> Page:
        """Show the documentation."""
        return html_page(docs.page(shown, call.host or "127.0.0.1:8000"))

    async def documentation_style(call: Request) -> Page:
        """Return the style of the documentation."""
        return style

    return [
        Route("GET", "/openapi.json", openapi_document, waits=False, hidden=True),
        Route("GET", "/docs", documentation, waits=False, hidden=True),
        Route("GET", "/docs.css", documentation_style, waits=False, hidden=True),
    ]
