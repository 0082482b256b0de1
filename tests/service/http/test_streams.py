"""Bodies that are read piece by piece: of any length, and never held."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ebrank.service.http.app import Gone
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store.memory import MemoryStore
from tests.in_process import in_process
from tests.threaded import Threaded

SETTINGS = Settings(limits=LimitsSettings(body_bytes=1024, body_seconds=0.2))


def lines(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield json.dumps({"id": f"item-{number}", "features": {"x": number}}).encode() + b"\n"


def test_a_piece_that_does_not_come_ends_it_and_what_came_stands() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"".join(lines(50))
        yield b'{"id": "half'
        await asyncio.sleep(60)

    store = MemoryStore()
    with in_process(SETTINGS, store) as local:
        assert local.request("POST", "/v1/items:bulk", content=pieces()).status_code == 408
        assert local.run(store.catalog.tally()).rows == 50


def test_a_caller_who_leaves_gets_no_answer() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"".join(lines(50))
        raise Gone

    store = MemoryStore()
    with in_process(SETTINGS, store) as local:
        with pytest.raises(AssertionError):  # httpx misses the response
            local.request("POST", "/v1/items:bulk", content=pieces())
        assert local.run(store.catalog.tally()).rows == 50


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
