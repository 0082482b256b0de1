"""Connections on real sockets: bodies that come late, in pieces, or not; callers that leave."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ebrank.service.engine import Engine
from ebrank.service.http.app import App
from ebrank.service.ops.server import Server
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store.memory import MemoryStore
from tests.serving import serving

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


class Wire:
    """A server on a loopback port, and its callers."""

    def __init__(self, port: int, server: Server) -> None:
        self.port = port
        self.server = server
        self._callers: list[Caller] = []

    async def call(self, sent: bytes = b"") -> Caller:
        caller = Caller(*await asyncio.open_connection("127.0.0.1", self.port))
        self._callers.append(caller)
        await caller.send(sent)
        return caller

    async def healthy(self) -> bool:
        status, _, body = await (await self.call(HEALTH)).answer()
        return status == 200 and json.loads(body) == {"status": "ok"}

    async def hang_up(self) -> None:
        for caller in self._callers:
            caller.writer.transport.abort()


@asynccontextmanager
async def wired(**limits: Any) -> AsyncIterator[Wire]:  # noqa: ANN401 (of any type)
    settings = Settings(limits=LimitsSettings(**limits))
    listening = socket.create_server(("127.0.0.1", 0))
    mishaps: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, told: mishaps.append(f"{told['message']}: {told.get('exception')!r}")
    )
    engine = await Engine.open(MemoryStore(), settings)
    app = App(engine, settings)
    app.readiness.started = True
    server = Server(app, settings.limits)
    wire = Wire(listening.getsockname()[1], server)
    serving = asyncio.create_task(server.serve([listening]))
    try:
        yield wire
    finally:
        await wire.hang_up()
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
    async with wired(bodies_bytes=9000, body_bytes=5000) as wire:
        half = post("/v1/rank", b" " * 2500, length=4000)
        holding = [await wire.call(half) for _ in range(3)]
        await asyncio.sleep(0.1)
        status, headers, body = await (await wire.call(half)).answer()
        assert (status, headers["retry-after"]) == (503, "1")
        assert b"bodies_bytes" in body
        await holding[0].send(b" " * 1500)  # and that is no JSON
        assert (await holding[0].answer())[0] == 400
        again = await wire.call(post("/v1/rank", b"{}"))
        assert (await again.answer())[0] == 422


async def test_a_body_that_does_not_come_in_time_ends_the_connection() -> None:
    async with wired(body_seconds=0.2) as wire:
        caller = await wire.call(post("/v1/rank", b"{", length=100))
        status, headers, body = await caller.answer()
        assert (status, headers["connection"]) == (408, "close")
        assert b"the body was not sent within 0.2 s" in body
        assert await caller.closed()


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/rank", 413), ("/nothing", 404), ("/healthz", 405)]
)
async def test_a_body_that_is_not_wanted_is_thrown_away(path: str, status: int) -> None:
    async with wired(body_bytes=1024) as wire:
        caller = await wire.call(post(path, b"x" * 1000, length=200_000))
        assert (await caller.answer())[0] == status
        await caller.send(b"x" * 199_000 + HEALTH)
        assert (await caller.answer())[0] == 200


async def test_a_body_in_pieces_and_in_chunks() -> None:
    async with wired() as wire:
        body = b'{"items": [{"id": "a", "features": [1.0]}]}'
        put = post("/v1/queries/tea/items", body).replace(b"POST", b"PUT")
        caller = await wire.call()
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
    async with wired() as wire:
        caller = await wire.call(post("/v1/rank", b"", "Expect: 100-continue", length=2))
        assert (await caller.answer())[0] == 100
        await caller.send(b"{}")
        assert (await caller.answer())[0] == 422
        unknown = await wire.call(post("/nothing", b"", "Expect: 100-continue", length=2))
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
    async with wired() as wire:
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", wire.port)) as caller:
                caller.sendall(sent)
        assert await wire.healthy()


async def test_a_connection_between_two_requests_is_closed_in_time() -> None:
    async with wired(idle_seconds=1) as wire:
        used = await wire.call(HEALTH)
        assert (await used.answer())[0] == 200
        await used.send(HEALTH)
        assert (await used.answer())[0] == 200
        assert await used.closed()


@pytest.mark.slow
async def test_bodies_that_nobody_asked_for_take_no_memory(tmp_path: Path) -> None:
    """60 callers of an open route, each with all but the last byte of 8 MiB, took 0.5 GB."""

    def resident(pid: int) -> int:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        return int(status.split("VmRSS:")[1].split()[0]) // 1024

    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8388608\r\n\r\n"
    body = b"x" * (8 * 2**20 - 1)
    with serving(tmp_path / "store") as server:

        async def one() -> asyncio.StreamWriter:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(head + body)
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(0.5):
                    await writer.drain()
            return writer

        before = resident(server.process.pid)
        writers = [await asyncio.gather(*(one() for _ in range(10))) for _ in range(6)]
        grown = resident(server.process.pid) - before
        for writer in (writer for some in writers for writer in some):
            writer.transport.abort()
        assert grown < 100, f"{grown} MB more"  # loading what lists did not need takes some
