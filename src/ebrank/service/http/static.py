"""The dashboard's files, read once from the package, so that no URL can reach another file."""

from __future__ import annotations

import mimetypes
from dataclasses import replace
from hashlib import sha256
from importlib import resources

from ebrank.service.http.problems import NoSuchPage
from ebrank.service.http.routes import Page, Request, Route

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


def dashboard_routes() -> list[Route]:
    """Return the routes of the dashboard: its page at `/`, its files under `/dashboard/`."""
    folder = resources.files("ebrank.service") / "dashboard"
    files = {
        file.name: _file(file.name, file.read_bytes())
        for file in folder.iterdir()
        if file.is_file()
    }

    async def dashboard(call: Request) -> Page:
        """Show the dashboard."""
        return await dashboard_file(replace(call, names={"file": "index.html"}))

    async def dashboard_file(call: Request) -> Page:
        """Return a file of the dashboard."""
        if call.names["file"] not in files:
            raise NoSuchPage("the dashboard has no such file")
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
