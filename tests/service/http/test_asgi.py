"""The application is plain ASGI: other servers run it, and other applications mount it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx
import pytest
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config as HypercornConfig
from starlette.applications import Starlette
from starlette.routing import Mount

from ebrank.service.engine import Engine
from ebrank.service.http.app import App
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store.memory import MemoryStore

SETTINGS = Settings(limits=LimitsSettings(body_bytes=1000))
ITEMS = {"items": [{"id": "a/b", "features": [1.0]}]}


@asynccontextmanager
async def under_hypercorn(app: App) -> AsyncIterator[httpx.AsyncClient]:
    config, stop = HypercornConfig(), asyncio.Event()
    config.errorlog = None
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config.bind = [f"fd://{os.dup(listening.fileno())}"]
        running = asyncio.create_task(hypercorn_serve(app, config, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{listening.getsockname()[1]}"
        ) as client:
            yield client
        stop.set()
        await running


@asynccontextmanager
async def within_starlette(app: App) -> AsyncIterator[httpx.AsyncClient]:
    outer = Starlette(routes=[Mount("/search/ü", app=app)])
    transport = httpx.ASGITransport(app=outer, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost/search/%C3%BC"
    ) as client:
        yield client


@pytest.mark.parametrize("host", [under_hypercorn, within_starlette])
async def test_other_servers_run_it(
    host: Callable[[App], AbstractAsyncContextManager[httpx.AsyncClient]],
) -> None:
    engine = await Engine.open(MemoryStore(), SETTINGS)
    app = App(engine, SETTINGS)
    app.readiness.started = True
    async with host(app) as client:
        put = await client.put("/v1/queries/tea%2Fgreen/items", json=ITEMS)
        assert put.json()["query"] == "tea/green"
        ranked = await client.post("/v1/rank", json={"query": "tea/green"})
        assert [item["id"] for item in ranked.json()["items"]] == ["a/b"]
        withdrawn = await client.delete("/v1/queries/tea%2Fgreen/items/a%2Fb")
        assert withdrawn.json()["withdrawn"] is True
        found = await client.get("/v1/queries?prefix=tea&limit=1")
        assert found.json()["next"] is None
        assert (await client.get("/v1/nothing")).status_code == 404
        large = await client.post("/v1/rank", content=b" " * 2000)
        assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")
        assert (await client.head("/healthz")).status_code == 200
    await engine.close()
