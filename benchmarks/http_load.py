"""A small HTTP client that is faster than what it measures: keep-alive, raw sockets, no parsing.

`open_loop` sends at a fixed rate whatever the server does, on new connections where the old ones
still wait, so that a server that stalls cannot hide it. `closed_loop` sends as fast as answers
come.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

QUERIES, K, BATCH = 50, 10, 100


@dataclass(frozen=True)
class Load:
    """What came back: seconds per request, and how long it all took."""

    latencies: Sequence[float]
    seconds: float

    @property
    def rate(self) -> float:
        """Requests per second."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """Return the latency that this share of requests kept, in milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3


def request(method: str, path: str, body: Any = None) -> bytes:  # noqa: ANN401 (any JSON)
    """Return a request as it goes over the wire."""
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def rank(number: int, queries: int = QUERIES) -> bytes:
    """Return the request for a list."""
    return request("POST", "/v1/rank", {"query": f"query-{number % queries}", "k": K})


def click(served: dict[str, Any], item: dict[str, Any]) -> dict[str, str]:
    """Return a click on an item of a list."""
    ranking = served["ranking_id"]
    return {
        "event_id": f"{ranking}-{item['rank']}",
        "ranking_id": ranking,
        "item": item["id"],
        "type": "click",
    }


def click_batches(port: int, lists: int) -> list[bytes]:
    """Return requests that click on all items of so many new lists, a batch of events each."""
    answers = map(json.loads, ask_all(port, [rank(number) for number in range(lists)]))
    clicks = [click(served, item) for served in answers for item in served["items"]]
    return [
        request("POST", "/v1/feedback", {"events": clicks[first : first + BATCH]})
        for first in range(0, len(clicks), BATCH)
    ]


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length = -1
        self._answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what to write to."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Collect one answer; complete it when its body is."""
        self._buffer += data
        if self._length < 0:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end].lower()
            self._length = end + 4 + int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(self._buffer) >= self._length and self._answer is not None:
            answer, self._buffer, self._length = bytes(self._buffer), bytearray(), -1
            self._answer.set_result(answer)

    def connection_lost(self, problem: Exception | None) -> None:
        """Tell whoever waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the server left"))

    async def ask(self, message: bytes) -> bytes:
        """Send a request and return the body of its answer, which must be a good one."""
        if self.transport.is_closing():
            raise ConnectionResetError("the server left")
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(message)
        head, _, body = (await self._answer).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{head.splitlines()[0].decode()}: {body.decode()[:300]}")
        return body


@asynccontextmanager
async def connected(port: int, count: int) -> AsyncIterator[list[Connection]]:
    """Yield so many connections."""
    loop = asyncio.get_running_loop()
    pairs = [await loop.create_connection(Connection, "127.0.0.1", port) for _ in range(count)]
    try:
        yield [connection for _, connection in pairs]
    finally:
        for transport, _ in pairs:
            transport.close()


def open_loop(
    port: int,
    message: Callable[[int], bytes],
    rate: float,
    seconds: float,
    answered: Callable[[int, bytes], None] = lambda number, body: None,
) -> Load:
    """Send requests at a rate; those that find no idle connection open another."""
    return asyncio.run(_open_loop(port, message, rate, seconds, answered))


async def _open_loop(
    port: int,
    message: Callable[[int], bytes],
    rate: float,
    seconds: float,
    answered: Callable[[int, bytes], None],
) -> Load:
    latencies: list[float] = []
    loop = asyncio.get_running_loop()
    async with connected(port, 8) as idle:

        async def one(number: int) -> None:
            start = time.perf_counter()
            body = None
            while idle and body is None:
                connection = idle.pop()
                with suppress(ConnectionResetError):  # idle for so long that the server closed it
                    body = await connection.ask(message(number))
            if body is None:
                _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
                body = await connection.ask(message(number))
            latencies.append(time.perf_counter() - start)
            idle.append(connection)
            answered(number, body)

        began = time.perf_counter()
        tasks = []
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(one(number)))
        await asyncio.gather(*tasks)
        return Load(latencies, time.perf_counter() - began)


def closed_loop(port: int, messages: Iterator[bytes], connections: int, seconds: float) -> Load:
    """Send one request after another on each connection, until the time or the messages end."""
    return asyncio.run(_closed_loop(port, messages, connections, seconds))


async def _closed_loop(
    port: int, messages: Iterator[bytes], connections: int, seconds: float
) -> Load:
    latencies: list[float] = []
    began = time.perf_counter()

    async def work(connection: Connection) -> None:
        for message in messages:
            start = time.perf_counter()
            if start - began > seconds:
                return
            await connection.ask(message)
            latencies.append(time.perf_counter() - start)

    async with connected(port, connections) as opened:
        await asyncio.gather(*(work(connection) for connection in opened))
        return Load(latencies, time.perf_counter() - began)


def ask_all(port: int, messages: Sequence[bytes], connections: int = 4) -> list[bytes]:
    """Send requests and return the bodies of their answers, in their order."""

    async def main() -> list[bytes]:
        answers: list[bytes] = [b""] * len(messages)
        numbered = iter(enumerate(messages))

        async def work(connection: Connection) -> None:
            for number, message in numbered:
                answers[number] = await connection.ask(message)

        async with connected(port, connections) as opened:
            await asyncio.gather(*(work(connection) for connection in opened))
        return answers

    return asyncio.run(main())
