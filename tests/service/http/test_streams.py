"""Bodies that are read piece by piece: of any length, and never held."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ebrank.service.core.engine import Engine
from ebrank.service.http.app import App
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store.memory import MemoryStore
from tests.threaded import Threaded

LIMITS = LimitsSettings(body_bytes=1024, body_seconds=0.2)


def lines(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield json.dumps({"id": f"item-{number}", "features": {"x": number}}).encode() + b"\n"


def post(pieces: Callable[[], Awaitable[dict[str, Any]]]) -> tuple[list[Any], int]:
    """Send a body to the application; return what it sent back, and the items it has then."""

    async def session() -> tuple[list[Any], int]:
        settings, store = Settings(limits=LIMITS), MemoryStore()
        engine = await Engine.open(store, settings)
        app, sent = App(engine, settings), list[Any]()
        app.readiness.started = True
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/items:bulk",
            "headers": [(b"host", b"localhost")],
            "client": ("127.0.0.1", 1),
        }

        async def send(message: Any) -> None:  # noqa: ANN401 (of ASGI)
            sent.append(message)

        await app(scope, pieces, send)
        await engine.close()
        return sent, (await store.catalog.tally()).rows

    return asyncio.run(session())


def test_a_body_may_be_longer_than_others() -> None:
    left = list(lines(200))

    async def receive() -> dict[str, Any]:
        piece = left.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    sent, items = post(receive)
    assert sent[0]["status"] == 200
    assert json.loads(sent[1]["body"])["changed"] == items == 200


def test_a_piece_that_does_not_come_ends_it_and_what_came_stands() -> None:
    left = [b"".join(lines(50)), b'{"id": "half']

    async def receive() -> dict[str, Any]:
        if not left:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": left.pop(0), "more_body": True}

    sent, items = post(receive)
    assert (sent[0]["status"], items) == (408, 50)


def test_a_caller_who_leaves_gets_no_answer() -> None:
    left = [b"".join(lines(50)), b'{"id": "half']

    async def receive() -> dict[str, Any]:
        if not left:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": left.pop(0), "more_body": True}

    assert post(receive) == ([], 50)


@pytest.mark.slow
def test_a_real_server_reads_a_long_stream(tmp_path: Path) -> None:
    config = "[limits]\nbody_bytes = 2048\nbodies_bytes = 4096\n"
    with Threaded(tmp_path, config) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("POST", "/v1/items:bulk", body=lines(20_000), encode_chunked=True)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        assert (answer.status, told["changed"], told["errors"]) == (200, 20_000, [])
        connection.request("GET", "/v1/items/item-19999")
        assert json.loads(connection.getresponse().read())["features"] == {"x": 19999.0}
        connection.close()
