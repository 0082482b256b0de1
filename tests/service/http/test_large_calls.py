"""Large calls go in portions, all or none; how long each takes, `benchmarks.stalls` measures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from ebrank.service.api import MOST_LISTED
from ebrank.service.http.app import Gone
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.sqlite import SqliteStore
from tests.in_process import Local, in_process
from tests.service.store.blocking import run

SOME = 3_000


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    store = SqliteStore(tmp_path / "store")
    with in_process(store=store) as client:
        yield client
    run(store.close())


@cache
def body(count: int = SOME, width: int = 20, seed: int = 0) -> bytes:
    """Return the body that puts so many items."""
    rows = np.random.default_rng(seed).random((count, width)).round(4).tolist()
    items = [{"id": f"item-{at:05d}", "features": row} for at, row in enumerate(rows)]
    return msgspec.json.encode({"items": items})


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
