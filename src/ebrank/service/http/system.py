"""What operators and programs ask about the server itself: health, metrics, documentation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from ebrank.service.http import docs, openapi
from ebrank.service.http.admission import SCOPES
from ebrank.service.http.metrics import CONTENT_TYPE, Metrics
from ebrank.service.http.readiness import Readiness
from ebrank.service.http.routes import JSON, Page, Request, Route
from ebrank.service.http.static import html_page


class Health(msgspec.Struct, frozen=True):
    """How the server is."""

    status: str


def health_routes(readiness: Readiness) -> list[Route]:
    """Return liveness and readiness."""

    async def healthz(call: Request) -> Health:
        """Respond if the process is alive. Restart it if it does not respond."""
        return Health("ok")

    async def readyz(call: Request) -> Health:
        """Say whether requests can be served: 503 while starting, while closing, and while the
        store fails. It is tried once a second, and the outcome of requests counts too.
        """
        await readiness.check()
        return Health("ready")

    return [
        Route("GET", "/healthz", healthz, waits=False),
        Route("GET", "/readyz", readyz, waits=False, errors=(503,)),
    ]


def metrics_route(metrics: Metrics) -> Route:
    """Return the page that Prometheus reads."""

    async def prometheus(call: Request) -> Page:
        """Return counters and latencies in the text format of Prometheus."""
        return Page(metrics.text(), CONTENT_TYPE)

    return Route("GET", "/metrics", prometheus, scopes=SCOPES, waits=False)


def documentation_routes(routes: Iterable[Route]) -> list[Route]:
    """Return the OpenAPI document of these routes and a page that shows it."""
    documented = tuple(routes)
    style = Page(docs.STYLE, "text/css; charset=utf-8")

    @cache  # made on first use, in a thread: servers start sooner without, and lists do not wait
    def document() -> dict[str, Any]:
        return openapi.document(documented)

    async def openapi_document(call: Request) -> Page:
        """Return the OpenAPI document."""
        return Page(msgspec.json.encode(await asyncio.to_thread(document)), JSON)

    async def documentation(call: Request) -> Page:
        """Show the documentation."""
        shown = await asyncio.to_thread(document)
        return html_page(docs.page(shown, call.host or "127.0.0.1:8000"))

    async def documentation_style(call: Request) -> Page:
        """Return the style of the documentation."""
        return style

    return [
        Route("GET", "/openapi.json", openapi_document, waits=False, hidden=True),
        Route("GET", "/docs", documentation, waits=False, hidden=True),
        Route("GET", "/docs.css", documentation_style, waits=False, hidden=True),
    ]
