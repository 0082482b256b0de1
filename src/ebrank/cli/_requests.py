"""Requests of commands that take a STORE or the URL of its server, checked as a server would."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Literal, TypeVar

from ebrank.errors import ParameterError

if TYPE_CHECKING:
    import msgspec

    from ebrank.client import Client
    from ebrank.service.core.catalog import Catalog
    from ebrank.service.store import Store

T = TypeVar("T")
Request = TypeVar("Request", bound="msgspec.Struct")


def checked(request: Request) -> Request:
    """Return a request that its own type allows: constructors check nothing.

    Raises:
        ParameterError: if a server would refuse it, for the same reason.
    """
    import msgspec

    from ebrank.service.http.problems import unreadable

    try:
        return msgspec.convert(msgspec.to_builtins(request), type(request))
    except msgspec.ValidationError as problem:
        refusal = unreadable(problem)
        raise ParameterError(f"{refusal.field}: {refusal}") from None


def answer(
    store: str,
    token: str | None,
    over_http: Callable[[Client], T],
    in_store: Callable[[str], Awaitable[T]],
) -> T:
    """Return what a server answers, if `store` is its URL, or what a store that no server uses."""
    if store.startswith(("http://", "https://")):
        from ebrank.client import Client

        with Client(store, token=token) as client:
            return over_http(client)

    async def opened() -> T:
        return await in_store(store)

    return asyncio.run(opened())


@asynccontextmanager
async def catalog_of(
    opening: AbstractAsyncContextManager[Store], missing: Literal["reject", "mean"] = "reject"
) -> AsyncIterator[tuple[Store, Catalog, float]]:
    """Yield an opened store, its catalog and the time of a change; then write what changed."""
    from ebrank.service.core.catalog import Catalog
    from ebrank.service.settings import FeaturesSettings

    async with opening as store:
        now = max(time.time(), await store.log.last_time())
        yield store, await Catalog.open(store, FeaturesSettings(missing=missing)), now
        await store.flush()
