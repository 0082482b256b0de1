"""Everything beside the API: health, metrics, documentation, and the dashboard."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

import msgspec

from ebrank.service.http import openapi
from ebrank.service.http.admission import SCOPES
from ebrank.service.http.metrics import CONTENT_TYPE, Metrics
from ebrank.service.http.problems import HttpProblem
from ebrank.service.http.readiness import Readiness
from ebrank.service.http.routes import JSON, Page, Request, Route

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""A page may load its own files and ask this server, nothing else, and run no inline script."""

HTML = "text/html; charset=utf-8"


def html_page(content: str) -> Page:
    """Return a page for browsers."""
    return Page(content.encode(), HTML, headers={"content-security-policy": POLICY})


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
    style = Page(openapi.STYLE, "text/css; charset=utf-8")

    @cache  # made on first use, in a thread: servers start sooner without, and lists do not wait
    def document() -> dict[str, Any]:
        return openapi.document(documented)

    async def openapi_document(call: Request) -> Page:
        """Return the OpenAPI document."""
        return Page(msgspec.json.encode(await asyncio.to_thread(document)), JSON)

    async def documentation(call: Request) -> Page:
        """Show the documentation."""
        shown = await asyncio.to_thread(document)
        return html_page(openapi.page(shown, call.host or "127.0.0.1:8000"))

    async def documentation_style(call: Request) -> Page:
        """Return the style of the documentation."""
        return style

    return [
        Route("GET", "/openapi.json", openapi_document, waits=False, hidden=True),
        Route("GET", "/docs", documentation, waits=False, hidden=True),
        Route("GET", "/docs.css", documentation_style, waits=False, hidden=True),
    ]


def dashboard_routes() -> list[Route]:
    """Return the routes of the dashboard: its page at `/`, its files under `/dashboard/`.

    The files are read once from the package, so that no URL can reach another file.
    """
    folder = resources.files("ebrank.service") / "dashboard"
    files = {
        file.name: _file(file.name, file.read_bytes())
        for file in folder.iterdir()
        if file.is_file()
    }

    async def dashboard(call: Request) -> Page:
        """Show the dashboard."""
        return files["index.html"]

    async def dashboard_file(call: Request) -> Page:
        """Return a file of the dashboard."""
        if call.names["file"] not in files:
            raise HttpProblem(404, "the dashboard has no such file")
        return files[call.names["file"]]

    return [
        Route("GET", "/", dashboard, waits=False, hidden=True),
        Route("GET", "/dashboard/{file}", dashboard_file, waits=False, hidden=True),
    ]


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
