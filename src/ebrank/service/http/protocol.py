"""HTTP/1.1 on a connection: one request at a time, as ASGI.

`httptools` parses. A body is read only when the application asks for it, except what came along
with the head, at most a piece of 64 KiB. If the application does not ask, the body is never read:
the response is sent, and the connection closes.

Requests that come before the last response (pipelining) wait for their turn.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, MutableMapping
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

import httptools

from ebrank.service.http.problems import BadRequest, HttpProblem, TooLargeHead, TooSlow
from ebrank.service.logs import about

if TYPE_CHECKING:
    from ebrank.service.http.connections import Connections, Waiting

Message: TypeAlias = MutableMapping[str, Any]
Header: TypeAlias = tuple[bytes, bytes]

log = logging.getLogger("ebrank.service")

PIECE = 64 * 1024
MOST_OVERHEAD = 64 * 1024
"""Bytes of a request besides its body, and as many again as its body has, for chunks."""
MOST_HEADERS = 100
_BUFFER = memoryview(bytearray(PIECE))  # what was received is parsed before anything else is
_GONE: Message = {"type": "http.disconnect"}


class Exchange:
    """One request and its response; `receive` and `send` are those of ASGI.

    Attributes:
        scope: what ASGI says about it.
        complete: whether its body has ended.
        keeps: whether the connection can be used again after it.
        answered: whether its response has begun.
        gone: whether the rest of its body will not come.
    """

    __slots__ = (
        "_arrival",
        "_connection",
        "_expects",
        "_pieces",
        "_start",
        "answered",
        "complete",
        "gone",
        "keeps",
        "scope",
    )

    def __init__(
        self, connection: Connection, scope: Message, *, keeps: bool, expects: bool
    ) -> None:
        self.scope = scope
        self.complete = self.answered = self.gone = False
        self.keeps = keeps
        self._expects = expects
        self._connection = connection
        self._pieces: list[bytes] = []
        self._arrival: asyncio.Future[None] | None = None
        self._start: Message = {}

    def arrived(self, piece: bytes) -> None:
        """Take a piece of the body."""
        if not self.answered:
            self._pieces.append(piece)
        self.wake()

    def wake(self) -> None:
        """Wake `receive`."""
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    @property
    def wants(self) -> bool:
        """Whether the application waits for more of the body."""
        return self._arrival is not None

    async def receive(self) -> Message:
        """Return the next piece of the body, or that there will be none."""
        if not (self._pieces or self.complete or self.gone):
            self._connection.reads_body(continues=self._expects)
            self._expects = False
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        if self.gone:
            return _GONE
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        return {"type": "http.request", "body": body, "more_body": not self.complete}

    async def send(self, message: Message) -> None:
        """Send the response, whose body is one piece."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        self.answered = True
        self._pieces.clear()
        if not self.complete or (b"connection", b"close") in self._start["headers"]:
            self.keeps = False
        self._connection.write(
            self._start["status"], self._start["headers"], message["body"], keeps=self.keeps
        )
        await self._connection.written()


class Connection(asyncio.BufferedProtocol):
    """One connection of a caller.

    Attributes:
        waiting: what it waits for, if it does; kept by `Connections`.
        began: whether part of a request has arrived that is not served yet.
    """

    __slots__ = (
        "_all",
        "_current",
        "_deaf",
        "_drained",
        "_eof",
        "_fed",
        "_headers",
        "_parser",
        "_paused",
        "_peer",
        "_problem",
        "_queue",
        "_task",
        "_transport",
        "_url",
        "began",
        "waiting",
    )

    def __init__(self, connections: Connections) -> None:
        self.waiting: Waiting | None = None
        self.began = False
        self._all = connections
        self._transport: asyncio.Transport
        self._peer: tuple[str, int] | None = None
        self._parser: httptools.HttpRequestParser | None = None
        self._queue: deque[Exchange] = deque()
        self._current: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._url = b""
        self._headers: list[Header] | None = None
        self._fed = 0  # bytes of the request that is being read, but for its body
        self._problem: HttpProblem | None = None  # after which nothing can be read
        self._deaf = self._eof = self._paused = False
        self._drained: asyncio.Future[None] | None = None

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what to write to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        name = transport.get_extra_info("peername")
        self._peer = (str(name[0]), int(name[1])) if name else None
        self._all.opened(self)

    def connection_lost(self, problem: Exception | None) -> None:
        """Release everything; a request being served still finishes."""
        self._all.lost(self)
        self._parser = None
        self._queue.clear()
        if self._current is not None:
            self._current.gone = True
            self._current.wake()
        self.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for incoming bytes."""
        return _BUFFER

    def buffer_updated(self, count: int) -> None:
        """Parse incoming bytes; stop reading while there is more than the application asks for."""
        if self._deaf:
            return
        if self._parser is None:
            self._parser = httptools.HttpRequestParser(self)
        self._fed += count
        try:
            self._parser.feed_data(_BUFFER[:count])
        except httptools.HttpParserUpgrade:
            self._deaf = True  # upgrades are not supported; this response is the last one
        except httptools.HttpParserError as problem:
            self._refuse(BadRequest(f"this is not HTTP/1.1: {problem}"))
        if self._fed > MOST_OVERHEAD:
            self._refuse(TooLargeHead(f"more than {MOST_OVERHEAD:,} bytes besides the body"))
        if self._problem is not None and self._current is None:
            self._last_words()
            return
        current = self._current
        if current is None or current.wants:
            return
        if self._queue or self.began or not current.complete:
            self._pause()

    def eof_received(self) -> bool:
        """Answer the requests received before the caller stopped sending, then close."""
        self._eof = self._deaf = True
        unfinished = self._current if not self._queue else self._queue[-1]
        if unfinished is not None and not unfinished.complete:
            unfinished.gone = True
            unfinished.wake()
        return self._current is not None

    def pause_writing(self) -> None:
        """Record that the caller does not read its response fast enough."""
        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_future()
            self._all.waits(self, "answer")

    def resume_writing(self) -> None:
        """Record that it has read most of it."""
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            self._all.serves(self)
            drained.set_result(None)

    # --- what the parser calls ---

    def on_message_begin(self) -> None:
        """Begin to read a request."""
        self._url, self._headers, self._fed = b"", [], 0
        self.began = True
        if self._current is None and self.waiting == "next":
            self._all.waits(self, "head")

    def on_url(self, url: bytes) -> None:
        """Take a part of the URL."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those after a body are ignored."""
        if self._headers is not None:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Serve the request, or queue it."""
        headers, parser = self._headers or [], self._parser
        assert parser is not None
        self._headers = None
        if self._problem is not None:
            return
        if len(headers) > MOST_HEADERS:
            self._refuse(TooLargeHead(f"more than {MOST_HEADERS} headers"))
            return
        scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": parser.get_http_version(),
            "method": parser.get_method().decode("ascii"),
            "scheme": "http",
            "path": "",
            "raw_path": _path(self._url),
            "query_string": self._url.partition(b"?")[2],
            "headers": headers,
            "client": self._peer,
        }
        keeps = parser.should_keep_alive() and not parser.should_upgrade()
        expects = [value.lower() for name, value in headers if name == b"expect"]
        exchange = Exchange(self, scope, keeps=keeps, expects=b"100-continue" in expects)
        if self._current is None:
            self._begin(exchange)
        else:
            self._queue.append(exchange)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._fed -= 2 * len(body)
        exchange = self._newest()
        if exchange is not None:
            exchange.arrived(body)

    def on_message_complete(self) -> None:
        """Record the end of a request."""
        self._fed = 0
        self.began = False
        exchange = self._newest()
        if exchange is not None:
            exchange.complete = True
            exchange.wake()

    def _newest(self) -> Exchange | None:
        """Return the request that is being read; None if it was refused."""
        if self._problem is not None:
            return None
        return self._queue[-1] if self._queue else self._current

    # --- one request after the other ---

    def _begin(self, exchange: Exchange) -> None:
        self._current = exchange
        self._all.serves(self)
        self._task = asyncio.get_running_loop().create_task(self._serve(exchange))

    async def _serve(self, exchange: Exchange) -> None:
        try:
            await self._all.app(exchange.scope, exchange.receive, exchange.send)
        except Exception:
            log.exception("an answer failed; this is a bug", extra=about("bug"))
        finally:
            self._served(exchange)

    def _served(self, exchange: Exchange) -> None:
        """Continue after a response: with the next request, or without the caller."""
        self._current = self._task = None
        if self._transport.is_closing():
            return
        if not exchange.answered:
            self._last_words()
        elif not exchange.complete:
            self._leave()
        elif not exchange.keeps or self._all.closing:
            self.close()
        elif self._queue:
            self._begin(self._queue.popleft())
        elif self._problem is not None or self._eof:
            self._last_words()
        else:
            self._resume()
            self._all.waits(self, "head" if self.began else "next")

    def _refuse(self, problem: HttpProblem) -> None:
        """Stop reading; answer earlier requests, then `_last_words` says why."""
        self._deaf, self._problem = True, self._problem or problem
        newest = self._queue[-1] if self._queue else self._current
        if newest is not None and not newest.complete:
            newest.gone = True
            newest.wake()

    def _last_words(self) -> None:
        """Report what is wrong with the input, if anything, and close."""
        if self._problem is None:
            self.close()
            return
        caller = self._peer[0] if self._peer else "unknown"
        self.write(*self._all.app.refusal(self._problem, caller), keeps=False)
        self._leave()

    def too_slow(self, seconds: float) -> None:
        """Tell a caller that the head of its request did not arrive in time."""
        self._refuse(TooSlow(f"the request line and headers were not sent within {seconds:g} s"))
        self._last_words()

    # --- reading and writing ---

    def reads_body(self, *, continues: bool) -> None:
        """Read on: the application asks for the body."""
        if continues:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._resume()
        if self.waiting != "body" and not self._transport.is_closing():
            self._all.waits(self, "body")

    def write(self, status: int, headers: Iterable[Header], body: bytes, *, keeps: bool) -> None:
        """Write a response; if the connection will close, say so."""
        if self._transport.is_closing():
            return
        self._all.serves(self)
        lines = [b"HTTP/1.1 %d %s" % (status, _phrase(status)), b"date: " + _date()]
        lines += [b"%s: %s" % header for header in headers if header[0] != b"connection"]
        lines.append(b"connection: keep-alive" if keeps else b"connection: close")
        self._transport.write(b"\r\n".join([*lines, b"", body]))

    async def written(self) -> None:
        """Return when the caller has read most of its response, or has left."""
        if self._drained is not None:
            await self._drained

    def close(self) -> None:
        """Close once everything written is sent."""
        self._deaf = True
        self._all.waits(self, "leaving")  # it may never take it
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._deaf = True
        self._all.lost(self)
        self._transport.abort()

    def _leave(self) -> None:
        """Stop sending, and let the caller find the response before it is cut off."""
        if self._eof:
            self.close()
            return
        self._deaf = True
        try:
            self._transport.write_eof()
        except OSError:  # it has left
            self.abort()
            return
        self._resume()
        self._all.waits(self, "leaving")

    def _pause(self) -> None:
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()


def _path(url: bytes) -> bytes:
    """Return the path of a URL, which may also name the server."""
    if url.startswith(b"/"):
        return url.partition(b"?")[0]
    try:
        return httptools.parse_url(url).path or b"/"
    except httptools.HttpParserInvalidURLError:
        return url


_PHRASES: dict[int, bytes] = {one.value: one.phrase.encode() for one in HTTPStatus}
_second, _text = 0, b""


def _phrase(status: int) -> bytes:
    return _PHRASES[status]


def _date() -> bytes:
    """Return the time in the format of headers, made once a second."""
    global _second, _text
    now = int(time.time())
    if now != _second:
        _second, _text = now, formatdate(now, usegmt=True).encode()
    return _text
