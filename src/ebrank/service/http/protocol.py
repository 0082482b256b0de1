"""HTTP/1.1 on a connection: uvicorn's protocol, within limits that it does not have.

uvicorn parses with `httptools` and speaks ASGI. This subclass adds to that:

- a head has a longest length, and so have chunk headers and trailers, which are not headers;
- a body is read when the application asks for it, apart from what comes right behind the head, and
  reading stops while requests are queued (pipelining): a caller cannot fill the memory;
- a caller who sends something that is not HTTP gets responses to earlier requests first, in order;
- a caller that stops sending (half-closes) is still answered;
- before the server closes a connection, the caller gets time to read the response;
- head and body of a response are written at once.

It overrides callbacks of asyncio and of httptools, and watches `receive` and `send` of ASGI.
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ebrank.service.http import Application, Message, Receive, Send
from ebrank.service.http.problems import HttpProblem

if TYPE_CHECKING:
    from ebrank.service.http.connections import OpenConnections, Waiting

MOST_OVERHEAD = 64 * 1024
"""Bytes of a request besides its body; chunked encoding may take as many again as the body."""
MOST_HEADERS = 100
CLOSE = (b"connection", b"close")


class HttpConnection(HttpToolsProtocol):
    """One connection of a caller.

    Attributes:
        waiting: what it waits for, if it does; kept by `OpenConnections`.
        began: whether part of a head has arrived.
    """

    __slots__ = (  # a dictionary of more than 30 attributes takes four times the memory
        "_all",
        "_asks",
        "_deaf",
        "_eof",
        "_last",
        "_open_body",
        "_overhead",
        "_problem",
        "_unanswered",
        "_wire",
        "began",
        "waiting",
    )

    def __init__(self, connections: OpenConnections) -> None:
        super().__init__(connections.config, connections.state, {"connection": self})
        self.waiting: Waiting | None = None
        self.began = False
        self._all = connections
        self._wire: _Wire
        self._unanswered = 0  # requests whose head has arrived
        self._open_body = False  # the newest of them has more body to come
        self._asks = False  # the application waits for that
        self._overhead = 0  # bytes of the request that is being read, but for its body
        self._problem: HttpProblem | None = None  # after which nothing can be read
        self._deaf = self._eof = self._last = False

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection; uvicorn writes to it through `_Wire`."""
        self._wire = _Wire(cast(asyncio.Transport, transport), self)
        super().connection_made(cast(asyncio.Transport, self._wire))
        self._all.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything; a request being served still finishes."""
        self._all.lost(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse incoming bytes; stop reading while there is more than the application asks for."""
        if self._deaf:
            return
        self._overhead += len(data)
        super().data_received(data)
        if self._overhead > MOST_OVERHEAD:
            self._refuse(HttpProblem(431, f"more than {MOST_OVERHEAD:,} bytes besides the body"))
        if not (self.reads or self._wire.is_closing()):
            self._wire.pause_reading()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer the requests received before the caller stopped sending, then close."""
        self._eof = self._deaf = True
        return self._unanswered > self._open_body

    def pause_writing(self) -> None:
        """Record that the caller does not read its response fast enough."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """Record that it has read most of it."""
        super().resume_writing()
        self._wait()

    # --- what the parser calls ---

    def on_message_begin(self) -> None:
        """Begin to read a request."""
        super().on_message_begin()
        self.began, self._overhead = True, 0
        if self.waiting == "next":
            self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those after a body are ignored."""
        if self.began:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Serve the request, or queue it."""
        self.began = False
        if len(self.headers) > MOST_HEADERS:
            self._refuse(HttpProblem(431, f"more than {MOST_HEADERS} headers"))
        if self._problem is None:
            super().on_headers_complete()
            self._unanswered += 1
            self._open_body = True
            self._last = self._last or self.parser.should_upgrade()  # no other protocol is spoken

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        # Once for the body, which `data_received` counted, and once to allow for chunk headers.
        self._overhead -= 2 * len(body)
        if self._problem is None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Record the end of a request."""
        self._overhead = 0
        if self._problem is None:
            self._open_body = False
            super().on_message_complete()

    # --- requests and responses ---

    async def serve(self, app: Application, scope: Message, receive: Receive, send: Send) -> None:
        """Let the application serve a request, and watch what it receives and sends."""
        self._wait()
        complete = False

        async def received() -> Message:
            if not self._open_body:
                return await receive()
            if self._body_unread and self._problem is not None:  # of a request that was queued
                self._end_body()
                return await receive()
            self._asks = True
            self._wire.resume_reading()
            self._wait()
            try:
                return await receive()
            finally:
                self._asks = False
                self._wait()

        async def sent(message: Message) -> None:
            nonlocal complete
            if message["type"] == "http.response.start":
                if self._last or self._all.closing or self._body_unread:
                    message = {**message, "headers": [*message["headers"], CLOSE]}
                # Head and body in one packet: uvicorn writes them separately.
                self._wire.hold()
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                complete = True
                self._wire.release()

        try:
            await app(scope, received, sent)
        finally:
            self._answered(complete=complete)

    @property
    def _body_unread(self) -> bool:
        return self._open_body and self._unanswered == 1

    @property
    def reads(self) -> bool:
        """Whether to read on: no request is queued, and the application wants the body."""
        return self._unanswered <= 1 and (self._asks or not self._open_body)

    def _answered(self, *, complete: bool) -> None:
        """Continue after a response: with the next request, or without the caller."""
        self._unanswered -= 1
        if self._unanswered or self._wire.is_closing():
            return
        if self._problem is not None:
            self._last_words()
        elif not complete:
            self.abort()
        elif self._eof:
            self.close()
        else:
            self._wire.resume_reading()
            self._wait()

    def _wait(self) -> None:
        """Report what the connection waits for."""
        if self.flow.write_paused:
            self._all.waits(self, "answer")
        elif self._asks:
            self._all.waits(self, "body")
        elif self._unanswered:
            self._all.serves(self)
        else:
            self._all.waits(self, "head" if self.began else "next")

    def send_400_response(self, msg: str) -> None:
        """Reject malformed input; uvicorn calls this."""
        self._refuse(HttpProblem(400, f"this is not HTTP/1.1: {sys.exception() or msg}"))

    def too_slow(self, seconds: float) -> None:
        """Tell a caller that the head of its request did not arrive in time."""
        self._refuse(
            HttpProblem(408, f"the request line and headers were not sent within {seconds:g} s")
        )

    def _refuse(self, problem: HttpProblem) -> None:
        """Read nothing more; answer earlier requests, and then say why."""
        self._deaf, self._problem = True, self._problem or problem
        if self._unanswered == 0:
            self._last_words()
        elif self._body_unread:
            self._end_body()

    def _end_body(self) -> None:
        """Let the application know that the rest of a body will not come."""
        self.cycle.disconnected = True
        self.cycle.message_event.set()

    def _last_words(self) -> None:
        """Send a final error response, and close."""
        if self._problem is None or self._wire.is_closing():
            return
        page = self._all.refusal(self._problem, self.client[0] if self.client else "unknown")
        first = f"HTTP/1.1 {page.status} {HTTPStatus(page.status).phrase}".encode()
        lines = [b"%s: %s" % header for header in [*self._all.headers, *page.encoded(), CLOSE]]
        self._wire.write(b"\r\n".join([first, *lines, b"", page.content]))
        self.leave()

    # --- the end of it ---

    def leave(self) -> None:
        """Half-close, and give the caller time to read the response before the reset."""
        if self._wire.is_closing():
            return
        self._deaf = True
        # Read on and discard: closing with unread input resets the connection, and the caller loses
        # the response.
        self._wire.transport.resume_reading()
        if self._eof or not self._wire.finish():
            self.close()
        else:
            self._all.waits(self, "leaving")

    def close(self) -> None:
        """Close once everything written is sent."""
        self._deaf = True
        self._all.waits(self, "leaving")  # the caller may never take it
        self._wire.transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._deaf = True
        self._all.lost(self)
        self._wire.transport.abort()


class _Wire:
    """The transport as uvicorn sees it: `close` lets the caller read the response first.

    Attributes:
        transport: the real one.
        left: whether nothing more is written.
    """

    __slots__ = ("_connection", "_held", "left", "transport")

    def __init__(self, transport: asyncio.Transport, connection: HttpConnection) -> None:
        self.transport = transport
        self.left = False
        self._connection = connection
        self._held: list[bytes] | None = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 (as asyncio's)
        """Return what is known about the connection."""
        return self.transport.get_extra_info(name, default)

    def close(self) -> None:
        """Close, once the caller has had time to read what was written."""
        self._connection.leave()

    def pause_reading(self) -> None:
        """Read nothing for now."""
        self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, if that is wanted."""
        if self._connection.reads and not self.is_closing():
            self.transport.resume_reading()

    def is_closing(self) -> bool:
        """Return whether nothing more will be written."""
        return self.left or self.transport.is_closing()

    def hold(self) -> None:
        """Keep what is written until `release`."""
        self._held = []

    def release(self) -> None:
        """Write what was kept, in one piece."""
        held, self._held = self._held, None
        if held:
            self.transport.write(b"".join(held))

    def write(self, data: bytes) -> None:
        """Write, or keep for later."""
        if self._held is None:
            self.transport.write(data)
        else:
            self._held.append(data)

    def finish(self) -> bool:
        """Half-close the connection; return False if the caller has already left."""
        self.release()
        self.left = True
        try:
            self.transport.write_eof()
        except OSError:
            return False
        return True
