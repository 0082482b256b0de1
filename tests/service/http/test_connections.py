"""Connections on real sockets: bodies that come late, in pieces, or not; callers that leave."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ebrank.service.engine import Engine
from ebrank.service.http.app import App
from ebrank.service.ops.server import Server
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store.memory import MemoryStore

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
PATIENCE = 20.0


class Caller:
    """A connection that can do all that a client should not."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the next answer."""
        async with asyncio.timeout(PATIENCE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in head[1:] if line)
            if head[0].endswith("100 Continue"):
                return 100, headers, b""
            body = await self.reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, body

    async def closed(self) -> bool:
        """Return whether the server hangs up, and sends nothing before."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read() == b""


Call = Callable[..., Awaitable[Caller]]


@asynccontextmanager
async def wired(**limits: Any) -> AsyncIterator[Call]:  # noqa: ANN401 (of any type)
    """Yield what connects to a server, and sends something."""
    settings, callers, mishaps = Settings(limits=LimitsSettings(**limits)), list[Caller](), []
    listening = socket.create_server(("127.0.0.1", 0))
    asyncio.get_running_loop().set_exception_handler(lambda _, told: mishaps.append(told))
    engine = await Engine.open(MemoryStore(), settings)
    app = App(engine, settings)
    app.readiness.started = True
    server = Server(app, settings.limits)
    serving = asyncio.create_task(server.serve([listening]))

    async def call(sent: bytes = b"") -> Caller:
        callers.append(Caller(*await asyncio.open_connection(*listening.getsockname())))
        await callers[-1].send(sent)
        return callers[-1]

    try:
        yield call
    finally:
        for caller in callers:
            caller.writer.transport.abort()
        server.should_exit = True
        await serving
        await engine.close()
    gc.collect()  # exceptions that nobody asked for are told then
    assert mishaps == []
    assert app.metrics.in_flight == 0


def post(path: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {size}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def test_what_all_bodies_hold_is_bounded() -> None:
    async with wired(bodies_bytes=9000, body_bytes=5000) as call:
        half = post("/v1/rank", b" " * 2500, length=4000)
        holding = [await call(half) for _ in range(3)]
        await asyncio.sleep(0.1)
        status, headers, body = await (await call(half)).answer()
        assert (status, headers["retry-after"]) == (503, "1")
        assert b"bodies_bytes" in body
        await holding[0].send(b" " * 1500)  # and that is no JSON
        assert (await holding[0].answer())[0] == 400
        again = await call(post("/v1/rank", b"{}"))
        assert (await again.answer())[0] == 422


async def test_a_body_that_does_not_come_in_time_ends_the_connection() -> None:
    async with wired(body_seconds=0.2) as call:
        caller = await call(post("/v1/rank", b"{", length=100))
        status, headers, body = await caller.answer()
        assert (status, headers["connection"]) == (408, "close")
        assert b"the body was not sent within 0.2 s" in body
        assert await caller.closed()


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/rank", 413), ("/nothing", 404), ("/healthz", 405)]
)
async def test_a_body_that_is_not_wanted_is_thrown_away(path: str, status: int) -> None:
    async with wired(body_bytes=1024) as call:
        caller = await call(post(path, b"x" * 1000, length=200_000))
        assert (await caller.answer())[0] == status
        await caller.send(b"x" * 199_000 + HEALTH)
        assert (await caller.answer())[0] == 200


async def test_a_body_in_pieces_and_in_chunks() -> None:
    async with wired() as call:
        body = b'{"items": [{"id": "a", "features": [1.0]}]}'
        put = post("/v1/queries/tea/items", body).replace(b"POST", b"PUT")
        caller = await call()
        for at in range(0, len(put), 7):
            await caller.send(put[at : at + 7])
            await asyncio.sleep(0)
        assert (await caller.answer())[0] == 200
        await caller.send(
            b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            b'9\r\n{"query":\r\n'
        )
        await asyncio.sleep(0.05)
        await caller.send(b'6;note=1\r\n"tea"}\r\n0\r\n\r\n')
        status, headers, answered = await caller.answer()
        assert (status, "connection" in headers) == (200, False)
        assert json.loads(answered)["items"][0]["id"] == "a"


async def test_a_caller_that_asks_first_is_told_to_go_on() -> None:
    async with wired() as call:
        caller = await call(post("/v1/rank", b"", "Expect: 100-continue", length=2))
        assert (await caller.answer())[0] == 100
        await caller.send(b"{}")
        assert (await caller.answer())[0] == 422
        unknown = await call(post("/nothing", b"", "Expect: 100-continue", length=2))
        assert (await unknown.answer())[0] == 404


@pytest.mark.parametrize(
    "sent",
    [
        b"junk\r\n\r\n",
        post("/nothing", b"{", length=10),
        post("/v1/rank", b"{", length=10),
        post("/v1/rank", b"{}") * 3,
    ],
    ids=["junk", "body not wanted", "body wanted", "pipelined"],
)
async def test_a_caller_that_left_before_its_answer_does_no_harm(sent: bytes) -> None:
    async with wired() as call:
        for _ in range(5):
            (await call(sent)).writer.transport.abort()
        assert (await (await call(HEALTH)).answer())[0] == 200


async def test_a_connection_between_two_requests_is_closed_in_time() -> None:
    async with wired(idle_seconds=1) as call:
        used = await call(HEALTH)
        assert (await used.answer())[0] == 200
        await used.send(HEALTH)
        assert (await used.answer())[0] == 200
        assert await used.closed()
