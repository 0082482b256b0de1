"""Everything beside the API: health, metrics, documentation, and the dashboard."""

from __future__ import annotations

import asyncio
import mimetypes
from functools import cache, partial
from hashlib import sha256
from importlib import resources
from typing import Any

import msgspec

from ebrank.service.http import openapi
from ebrank.service.http.admission import SCOPES
from ebrank.service.http.metrics import CONTENT_TYPE, Metrics
from ebrank.service.http.problems import HttpProblem
from ebrank.service.http.readiness import Readiness
from ebrank.service.http.routes import API, JSON, Page, Request, Route, endpoint

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A page may load its own files and ask this server, nothing else, and run no inline script."""

HTML = "text/html; charset=utf-8"


class Health(msgspec.Struct, frozen=True):
    """How the server is."""

    status: str


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
    async def healthz(call: Request) -> Health:
        """Respond if the process is alive. Restart it if it does not respond."""
        return Health("ok")

    @serve("/readyz", errors=(503,))
    async def readyz(call: Request) -> Health:
        """Say whether requests can be served: 503 while starting, while closing, and while the
        store fails. It is tried once a second, and the outcome of requests counts too.
        """
        await readiness.check()
        return Health("ready")

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
