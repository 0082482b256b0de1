"""Requests and answers as ASGI passes them: a body within a limit, and what is sent back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

from ebrank.service.http.problems import BadRequest, TooLarge
from ebrank.service.http.route import Page

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = "application/json"
SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every answer; a page may have its own policy."""

_ENCODER = msgspec.json.Encoder()


class Gone(Exception):
    """The caller has left; there is nobody to answer."""


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header of a request, None if it has none or several of different values."""
    values = {value for key, value in scope["headers"] if key == name}
    return values.pop().decode("latin-1") if len(values) == 1 else None


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the body of a request.

    Raises:
        TooLarge: if it is longer than the limit; the rest is not read.
        Gone: if the caller leaves before its end.
    """
    announced = header(scope, b"content-length") or "0"
    if not announced.isdecimal():
        raise BadRequest("content-length is not a number")
    if int(announced) > limit:
        raise _too_large(limit)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return bytes(body)


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


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body has more than {limit:,} bytes; send it in parts")
