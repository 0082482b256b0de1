"""Connections on real sockets: callers that are slow, rude, many, or all of it."""

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
from ebrank.service.http import connections
from ebrank.service.http.admission import new_token
from ebrank.service.http.app import App
from ebrank.service.http.connections import OpenConnections
from ebrank.service.http.protocol import HttpConnection
from ebrank.service.settings import LimitsSettings, Settings, Token
from ebrank.service.store.memory import MemoryStore
from tests.serving import serving

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
OK = {"status": "ok"}
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

    async def error(self) -> tuple[int, str]:
        status, _, body = await self.answer()
        return status, json.loads(body)["error"]["message"]

    async def closed(self) -> bool:
        """Return whether the server hangs up, and sends nothing before."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read() == b""
            except ConnectionResetError:
                return True


class Wire:
    """A server on a loopback port, and its callers."""

    def __init__(self, port: int, open_ones: OpenConnections, app: App) -> None:
        self.port = port
        self.open = open_ones
        self.app = app
        self._callers: list[Caller] = []

    async def call(self, sent: bytes = b"") -> Caller:
        caller = Caller(*await asyncio.open_connection("127.0.0.1", self.port))
        self._callers.append(caller)
        await caller.send(sent)
        return caller

    async def healthy(self) -> bool:
        status, _, body = await (await self.call(HEALTH)).answer()
        return status == 200 and json.loads(body) == OK

    async def hang_up(self) -> None:
        for caller in self._callers:
            caller.writer.transport.abort()


@asynccontextmanager
async def wired(*tokens: Token, **limits: Any) -> AsyncIterator[Wire]:  # noqa: ANN401
    settings = Settings(tokens=tokens, limits=LimitsSettings(**limits))
    listening = socket.create_server(("127.0.0.1", 0))
    mishaps: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, told: mishaps.append(f"{told['message']}: {told.get('exception')!r}")
    )
    engine = await Engine.open(MemoryStore(), settings)
    app = App(engine, settings)
    opened = OpenConnections(app, settings.limits)
    await opened.listen(listening)
    app.readiness.started = True
    wire = Wire(listening.getsockname()[1], opened, app)
    try:
        yield wire
    finally:
        await wire.hang_up()
        await opened.close(1.0)
        await engine.close()
    gc.collect()  # exceptions that nobody asked for are told then
    assert mishaps == []
    assert len(opened) == 0


def post(path: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {size}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


# --- bodies --------------------------------------------------------------------------------------


async def test_a_route_without_a_body_answers_before_one_comes() -> None:
    async with wired() as wire:
        for method in ("GET", "HEAD"):
            sent = post("/healthz", b"x" * 1000, length=8_388_608)
            caller = await wire.call(sent.replace(b"POST", method.encode()))
            async with asyncio.timeout(PATIENCE):
                head_of_answer = await caller.reader.readuntil(b"\r\n\r\n")
            assert head_of_answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"connection: close" in head_of_answer


async def test_before_a_token_is_accepted_no_body_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[bytes] = []
    take = HttpConnection.on_body

    def noted(self: HttpConnection, body: bytes) -> None:
        received.append(body)
        take(self, body)

    monkeypatch.setattr(HttpConnection, "on_body", noted)

    async with wired(new_token("shop", ["rank"])[1]) as wire:
        caller = await wire.call(post("/v1/rank", b"", length=8_000_000))
        status, message = await caller.error()
        assert (status, "token" in message) == (401, True)
        await caller.send(b"x" * 1_000_000)  # which is thrown away
        assert await wire.healthy()
    assert received == []


async def test_what_all_bodies_hold_is_bounded() -> None:
    async with wired(bodies_bytes=9000, body_bytes=5000) as wire:
        half = post("/v1/rank", b" " * 2500, length=4000)
        holding = [await wire.call(half) for _ in range(3)]
        await asyncio.sleep(0.1)
        late = await wire.call(half)
        status, message = await late.error()
        assert (status, "bodies_bytes" in message) == (503, True)
        await holding[0].send(b" " * 1500)  # and that is no JSON
        assert (await holding[0].answer())[0] == 400
        again = await wire.call(post("/v1/rank", b"{}"))
        assert (await again.answer())[0] == 422


@pytest.mark.parametrize(("length", "status"), [(100, 408), (99_999_999, 413)])
async def test_callers_that_do_not_send_their_body_are_told_and_cut_off(
    length: int, status: int
) -> None:
    async with wired(body_seconds=0.2) as wire:
        caller = await wire.call(post("/v1/rank", b"{", length=length))
        answered, headers, _ = await caller.answer()
        assert (answered, headers["connection"]) == (status, "close")
        assert await caller.closed()


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
        await caller.send(b'6;note=1\r\n"tea"}\r\n0\r\nTrailer: x\r\n\r\n')
        status, headers, answered = await caller.answer()
        assert (status, "connection" in headers) == (200, False)
        assert json.loads(answered)["items"][0]["id"] == "a"


@pytest.mark.parametrize("expected", ["100-continue", "100-Continue"])
async def test_a_caller_that_asks_first_is_told_to_go_on(expected: str) -> None:
    async with wired() as wire:
        caller = await wire.call(post("/v1/rank", b"", f"Expect: {expected}", length=2))
        assert (await caller.answer())[0] == 100
        await caller.send(b"{}")
        assert (await caller.answer())[0] == 422
        unknown = await wire.call(post("/nothing", b"", "Expect: 100-continue", length=2))
        assert (await unknown.answer())[0] == 404


# --- what is no HTTP, or too much of it ----------------------------------------------------------


JUNK = [
    b"\x00\x01\x02\r\n\r\n",
    b"GET\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nBad Name: x\r\n\r\n",
    b"POST /v1/rank HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"POST /v1/rank HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/rank HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
]


@pytest.mark.slow
async def test_bytes_that_are_not_http_get_an_error_and_are_closed() -> None:
    async with wired() as wire:
        for junk in JUNK:
            caller = await wire.call(HEALTH + junk)
            assert (await caller.answer())[0] == 200  # what came before is answered
            status, message = await caller.error()
            assert (status, message.startswith("this is not HTTP/1.1")) == (400, True)
            assert await caller.closed()


async def test_heads_are_bounded() -> None:
    async with wired() as wire:
        many = b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n"
        assert (await (await wire.call(many)).error())[0] == 431
        endless = await wire.call(b"GET /healthz HTTP/1.1\r\nX: ")
        await endless.send(b"y" * 200_000)
        assert (await endless.error())[0] == 431
        trailing = await wire.call(
            b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\n{}\r\n0\r\n"
        )
        await trailing.send((b"X: " + b"y" * 8000 + b"\r\n") * 30)
        assert (await trailing.error())[0] == 431
        crumbs = await wire.call(
            b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        await crumbs.send(b"1\r\n \r\n" * 60_000)
        assert (await crumbs.error())[0] == 431
        assert await wire.healthy()


async def test_requests_in_one_go_are_answered_in_order() -> None:
    async with wired() as wire:
        caller = await wire.call(HEALTH + HEALTH.replace(b"/healthz", b"/nothing") + HEALTH[:20])
        assert [(await caller.answer())[0] for _ in range(2)] == [200, 404]
        await caller.send(HEALTH[20:] + HEALTH * 1000)
        assert [(await caller.answer())[0] for _ in range(1001)] == [200] * 1001


async def test_a_caller_that_has_stopped_sending_is_answered() -> None:
    async with wired() as wire:
        caller = await wire.call(HEALTH + HEALTH)
        caller.writer.write_eof()
        assert [(await caller.answer())[0] for _ in range(2)] == [200, 200]
        assert await caller.closed()
        half = await wire.call(post("/v1/rank", b"{", length=10))
        half.writer.write_eof()
        assert await half.closed()


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent",
    [
        b"junk\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n",
        post("/nothing", b"{", length=10),
        post("/v1/rank", b"{", length=10),
        post("/v1/rank", b"{}") * 3,
    ],
    ids=["junk", "large head", "body not wanted", "body wanted", "pipelined"],
)
async def test_a_caller_that_left_before_its_answer_does_no_harm(sent: bytes) -> None:
    async with wired() as wire:
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", wire.port)) as caller:
                caller.sendall(sent)
        async with asyncio.timeout(PATIENCE):
            while not len(wire.open):
                await asyncio.sleep(0)
            while len(wire.open):
                await asyncio.sleep(0.01)


async def test_the_body_of_a_refused_request_is_not_that_of_the_one_before() -> None:
    async with wired() as wire:
        many = post("/v1/rank", b"", *["X: y"] * 101, length=2) + b"{}"
        caller = await wire.call(post("/v1/rank", b'{"query": "tea"}') + many)
        status, message = await caller.error()
        assert (status, "unknown query" in message) == (404, True)
        assert (await caller.error())[0] == 431


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b"GET /healthz HTTP/1.0\r\n\r\n", False),
        (b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", False),
        (b"GET http://localhost/healthz?a=b HTTP/1.1\r\n\r\n", True),
        (b"GET /healthz HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", False),
    ],
)
async def test_versions_and_ways_to_ask(sent: bytes, kept: bool) -> None:
    async with wired() as wire:
        caller = await wire.call(sent)
        status, headers, _ = await caller.answer()
        assert (status, headers.get("connection")) == (200, None if kept else "close")
        assert "date" in headers
        if not kept:
            assert await caller.closed()


# --- time ----------------------------------------------------------------------------------------


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at connections more often."""
    monkeypatch.setattr(connections, "SWEEP_SECONDS", 0.05)


async def test_slow_heads_and_idle_connections_are_closed(swept: None) -> None:
    async with wired(head_seconds=0.2, idle_seconds=5.0) as wire:
        silent = await wire.call()
        slow = await wire.call(HEALTH[:-2])
        used = await wire.call(HEALTH)
        assert (await used.answer())[0] == 200
        assert await silent.closed()
        status, message = await slow.error()
        assert (status, message) == (408, "the request line and headers were not sent within 0.2 s")
        await used.send(HEALTH)  # its time is not up
        assert (await used.answer())[0] == 200
        await used.send(HEALTH[:10])
        assert (await used.error())[0] == 408


async def test_a_connection_between_two_requests_is_closed_in_time(swept: None) -> None:
    async with wired(idle_seconds=0.2) as wire:
        used = await wire.call(HEALTH)
        assert (await used.answer())[0] == 200
        assert await used.closed()


async def test_callers_that_do_not_read_their_response_are_cut_off(swept: None) -> None:
    async with wired(answer_seconds=0.3) as wire:
        with socket.create_connection(("127.0.0.1", wire.port)) as deaf:
            deaf.setblocking(False)
            asks = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 600
            await asyncio.get_running_loop().sock_sendall(deaf, asks)
            async with asyncio.timeout(PATIENCE):
                while wire.app.metrics.in_flight == 0:
                    await asyncio.sleep(0.01)
                while wire.app.metrics.in_flight or len(wire.open):
                    await asyncio.sleep(0.01)


# --- floods --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent",
    [b"", HEALTH[:-2], HEALTH, post("/v1/rank", b"{", length=8_000_000)],
    ids=["idle", "half heads", "between requests", "held-back bodies"],
)
async def test_a_flood_of_connections_leaves_health_answering(sent: bytes) -> None:
    async with wired(connections=50) as wire:
        for _ in range(10):
            for _ in range(20):
                await wire.call(sent)
            assert await wire.healthy()
            assert len(wire.open) <= 50
        assert 'ebrank_connections_closed_total{reason="full"}' in (
            wire.app.metrics.text().decode()
        )


async def test_a_request_that_is_served_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async with wired(connections=5) as wire:
        go_on = asyncio.Event()

        async def slow(self: Engine) -> None:
            await go_on.wait()
            raise RuntimeError("not reached by others")

        monkeypatch.setattr(Engine, "models", slow)
        asks = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
        served = [await wire.call(asks) for _ in range(3)]
        await asyncio.sleep(0.05)
        for _ in range(20):
            await wire.call()
        assert await wire.healthy()
        served += [await wire.call(asks) for _ in range(2)]
        await asyncio.sleep(0.05)
        assert await (await wire.call(HEALTH)).closed()  # all are being served: no room
        go_on.set()
        assert [(await one.answer())[0] for one in served] == [500] * 5


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
