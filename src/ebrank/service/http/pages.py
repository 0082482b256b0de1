"""Health, metrics, documentation, and the dashboard: what the engine does not serve."""

from __future__ import annotations

import asyncio
import mimetypes
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

import msgspec

from ebrank.service import api
from ebrank.service.http import openapi
from ebrank.service.http.metrics import CONTENT_TYPE, Metrics
from ebrank.service.http.problems import HttpProblem
from ebrank.service.http.readiness import Readiness
from ebrank.service.http.routes import Page

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A page may load its own files and ask this server, nothing else, and run no inline script."""


class Pages:
    """Serves endpoints by their names in lower case.

    The dashboard's files are read once from the package, so that no URL can reach another file.
    """

    def __init__(self, readiness: Readiness, metrics: Metrics) -> None:
        self._readiness, self._metrics = readiness, metrics
        folder = resources.files("ebrank.service") / "dashboard"
        files = (file for file in folder.iterdir() if file.is_file())
        self._files = {file.name: _file(file.name, file.read_bytes()) for file in files}

    async def healthz(self) -> api.Health:
        """Respond."""
        return api.Health("ok")

    async def readyz(self) -> api.Health:
        """Respond if requests can be served."""
        await self._readiness.check()
        return api.Health("ready", self._readiness.store)

    async def metrics(self) -> Page:
        """Return what Prometheus reads."""
        return Page(self._metrics.text(), CONTENT_TYPE)

    async def openapi(self) -> Page:
        """Return the OpenAPI document."""
        return Page(msgspec.json.encode(await asyncio.to_thread(_document)))

    async def docs(self) -> Page:
        """Show the documentation."""
        shown = openapi.page(await asyncio.to_thread(_document))
        headers = {"content-security-policy": POLICY}
        return Page(shown.encode(), "text/html; charset=utf-8", headers=headers)

    async def docs_style(self) -> Page:
        """Return the style of the documentation."""
        return Page(openapi.STYLE, "text/css; charset=utf-8")

    async def dashboard(self) -> Page:
        """Show the dashboard."""
        return self._files["index.html"]

    async def dashboard_file(self, file: str) -> Page:
        """Return a file of the dashboard."""
        if file not in self._files:
            raise HttpProblem(404, "the dashboard has no such file")
        return self._files[file]


@cache  # made on first use, in a thread: servers start sooner without, and lists do not wait
def _document() -> dict[str, Any]:
    return openapi.document()


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
