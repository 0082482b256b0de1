"""Requests and answers as ASGI passes them: a body within a limit, and what is sent back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

from ebrank.service.http.problems import BadRequest, HttpProblem, Starting, TooLarge, TooSlow
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

BODY_SECONDS = 30.0
"""How long a caller may take to send a body; a connection must not be held for ever."""
LAST_SECONDS = 1.0
"""The same while the server closes."""
CLOSE = {"connection": "close"}
"""Of an answer that leaves before its request was read: what follows is no new request."""

_ENCODER = msgspec.json.Encoder()


class Gone(Exception):
    """The caller has left; there is nobody to answer."""


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header of a request, None if it has none or several of different values."""
    values = {value for key, value in scope["headers"] if key == name}
    return values.pop().decode("latin-1") if len(values) == 1 else None


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
            Starting: if it is not there when the server closes.
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
            return Starting("the server is closing", headers={"retry-after": "1", **CLOSE})
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
