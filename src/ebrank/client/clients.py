"""`Client`, which waits for responses, and `AsyncClient`, whose methods are coroutines."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Self

from ebrank.client.calls import Call
from ebrank.client.methods import Connection, Methods, blocking

if TYPE_CHECKING:
    import httpx


class AsyncClient(Methods):
    """Calls a server. Tasks may share one."""

    _transport = "AsyncClient"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _outcome(self, call: Call[Any]) -> httpx.Response:
        response: httpx.Response = await self._request(call)
        return response

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Client(Connection):
    """Calls a server, and waits for its responses. Threads may share one."""

    _transport = "Client"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    async def _outcome(self, call: Call[Any]) -> httpx.Response:
        response: httpx.Response = self._request(call)
        return response

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)

    put_items = blocking(Methods.put_items)
    put_catalog = blocking(Methods.put_catalog)
    load_catalog = blocking(Methods.load_catalog)
    load_catalog_lines = blocking(Methods.load_catalog_lines)
    catalog_item = blocking(Methods.catalog_item)
    catalog_items = blocking(Methods.catalog_items)
    withdraw_from_all = blocking(Methods.withdraw_from_all)
    features = blocking(Methods.features)
    change_features = blocking(Methods.change_features)
    withdraw = blocking(Methods.withdraw)
    rank = blocking(Methods.rank)
    feedback = blocking(Methods.feedback)
    click = blocking(Methods.click)
    impression = blocking(Methods.impression)
    query = blocking(Methods.query)
    queries = blocking(Methods.queries)
    delete = blocking(Methods.delete)
    deletions = blocking(Methods.deletions)
    train = blocking(Methods.train)
    models = blocking(Methods.models)
    activate = blocking(Methods.activate)
    insights = blocking(Methods.insights)
