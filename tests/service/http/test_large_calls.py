"""Large calls go in short steps: whoever else asks waits for a step, not for the call."""

from __future__ import annotations

import asyncio
import gc
import http.client
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ebrank.service.api import MOST_LISTED
from ebrank.service.http.app import App, Gone
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.sqlite import SqliteStore
from tests.in_process import Local, in_process
from tests.service.store.blocking import run
from tests.threaded import Threaded

LARGE, SOME = 10_000, 3_000
MOST_SECONDS = 0.02
"""Of one turn of the loop: processor time, since other processes share the machine."""


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    store = SqliteStore(tmp_path / "store")
    with in_process(store=store) as client:
        yield client
    run(store.close())


@cache
def body(count: int = LARGE, width: int = 20, seed: int = 0) -> bytes:
    """Return the body that puts so many items."""
    rows = np.random.default_rng(seed).random((count, width)).round(4).tolist()
    items = [{"id": f"item-{at:05d}", "features": row} for at, row in enumerate(rows)]
    return msgspec.json.encode({"items": items})


async def asked(app: App, method: str, path: str, content: bytes = b"") -> Any:  # noqa: ANN401 (JSON)
    """Return the answer to a request, without a client that would take time of its own."""
    sent: list[Any] = []
    path, _, query = path.partition("?")

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401 (as ASGI has it)
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-length", str(len(content)).encode())]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    assert sent[0]["status"] == 200, sent[1]["body"]
    return sent[1]["body"]


async def longest_turn(*calls: Any) -> float:  # noqa: ANN401 (coroutines)
    """Return the processor time of the longest turn of the loop while calls are served."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    gc.freeze()  # as the server does
    turns = [time.thread_time()]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        turns.append(time.thread_time())
    for task in tasks:
        task.result()
    return max(later - turn for turn, later in itertools.pairwise(turns))


@pytest.mark.slow
def test_no_turn_of_a_large_put_takes_long(local: Local) -> None:
    first, changed = body(), body(seed=1)
    path = "/v1/queries/large/items"
    for content in (first, first, changed):
        assert local.run(longest_turn(asked(local.app, "PUT", path, content))) < MOST_SECONDS


@pytest.mark.slow
def test_no_turn_of_one_large_get_or_of_many_at_once_takes_long(local: Local) -> None:
    local.run(asked(local.app, "PUT", "/v1/queries/large/items", body()))
    local.run(asked(local.app, "GET", "/v1/queries/large"))  # compiles
    assert local.run(longest_turn(asked(local.app, "GET", "/v1/queries/large"))) < MOST_SECONDS
    calls = [asked(local.app, "GET", "/v1/queries/large?cursor=5000&limit=300") for _ in range(20)]
    assert local.run(longest_turn(*calls)) < MOST_SECONDS


def test_a_large_query_is_read_in_parts(local: Local) -> None:
    path = "/v1/queries/tea/items"
    put = local.json("PUT", path, msgspec.json.decode(body(2500, 2)))
    assert put == {"query": "tea", "added": 2500, "changed": 0, "candidates": 2500}
    put = local.json("PUT", path, msgspec.json.decode(body(1000, 2, seed=1)))
    assert put == {"query": "tea", "added": 0, "changed": 1000, "candidates": 2500}
    local.json("DELETE", "/v1/queries/tea/items/item-00005")
    local.json("DELETE", "/v1/queries/tea/items/item-02005")
    first = local.json("GET", "/v1/queries/tea")
    assert (len(first["items"]), first["next_cursor"]) == (MOST_LISTED - 1, MOST_LISTED)
    assert len(first["most_buried"]) == 10
    parts, cursor = [first], first["next_cursor"]
    while cursor is not None:
        parts.append(local.json("GET", f"/v1/queries/tea?cursor={cursor}&limit=700"))
        cursor = parts[-1]["next_cursor"]
    assert [len(part["items"]) for part in parts] == [999, 700, 699, 100]
    items = [item for part in parts for item in part["items"]]
    names = [f"item-{at:05d}" for at in range(2500) if at not in (5, 2005)]
    assert [item["id"] for item in items] == names
    withdrawn = [item["id"] for part in parts for item in part["withdrawn"]]
    assert withdrawn == ["item-00005", "item-02005"]
    assert sorted(item["rank"] for item in items) == list(range(1, 2499))
    assert parts[1]["most_buried"] == []


def test_options_that_mean_nothing_are_refused(local: Local) -> None:
    for options, expected, message in (
        ("limit=0", 422, "`int` >= 1"),
        ("limit=5000", 422, "`int` <= 1000"),
        ("cursor=-1", 422, "`int` >= 0"),
        ("cursor=x", 422, "Expected `int`, got `str`"),
        ("page=2", 422, "unknown field `page`"),
        ("cursor=%ff", 400, "the query string is not UTF-8"),
    ):
        status, error = local.error("GET", f"/v1/queries/tea?{options}")
        assert (status, message in error["message"]) == (expected, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "place", "message"),
    [
        ({"id": "", "features": [1.0] * 20}, "items[2321].id", "length >= 1"),
        ({"id": "x", "features": ["a"]}, "items[2321].features[0]", "got `str`"),
        ({"id": "x", "features": [1.0]}, "items", "1 feature"),
        ({"id": "item-00001", "features": [1.0] * 20}, "items", "appears 2 times"),
    ],
)
def test_one_wrong_item_of_many_and_none_is_stored(
    local: Local, wrong: dict[str, Any], place: str, message: str
) -> None:
    items = json.loads(body(SOME))["items"]
    items[2321] = wrong
    content = json.dumps({"items": items}).encode()
    status, error = local.error("PUT", "/v1/queries/tea/items", content=content)
    assert (status, error["field"]) == (422, place)
    assert message in error["message"]
    assert local.error("GET", "/v1/queries/tea")[0] == 404


# --- bodies that are read piece by piece: of any length, and never held -------------------------


SLOW = Settings(limits=LimitsSettings(body_bytes=1024, body_seconds=0.2))


def lines_of(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield json.dumps({"id": f"item-{number}", "features": {"x": number}}).encode() + b"\n"


def test_a_piece_that_does_not_come_ends_it_and_what_came_stands() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"".join(lines_of(50))
        yield b'{"id": "half'
        await asyncio.sleep(60)

    store = MemoryStore()
    with in_process(SLOW, store) as local:
        assert local.request("POST", "/v1/items:bulk", content=pieces()).status_code == 408
        assert local.run(store.catalog.tally()).rows == 50


def test_a_caller_who_leaves_gets_no_answer() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"".join(lines_of(50))
        raise Gone

    store = MemoryStore()
    with in_process(SLOW, store) as local:
        with pytest.raises(AssertionError):  # httpx misses the response
            local.request("POST", "/v1/items:bulk", content=pieces())
        assert local.run(store.catalog.tally()).rows == 50


@pytest.mark.slow
def test_a_real_server_reads_a_long_stream(tmp_path: Path) -> None:
    config = "[limits]\nbody_bytes = 2048\nbodies_bytes = 4096\n"
    with Threaded(tmp_path, config) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("POST", "/v1/items:bulk", body=lines_of(20_000), encode_chunked=True)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        assert (answer.status, told["changed"], told["errors"]) == (200, 20_000, [])
        connection.request("GET", "/v1/items/item-19999")
        assert json.loads(connection.getresponse().read())["features"] == {"x": 19999.0}
        connection.close()
