"""What tests of stores ask of a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import Any, TypeAlias

import pytest

from ebrank.service.store import open
from ebrank.service.store.base import Store, StoreError
from ebrank.service.store.records import Operation, QueryState
from tests.service.histories import contents, counts

Counts: TypeAlias = dict[str, dict[tuple[int, int], int]]
"""Counts of items that are not 0, by outcome and rank."""


class Stores:
    """Opens stores of a kind.

    Attributes:
        keeps: whether a store that is closed and opened again holds what it held.
    """

    def __init__(self, url: Callable[[str], str]) -> None:
        self._url = url
        self._numbers = count()
        self.keeps = url("") != "memory:"

    def new(self) -> AbstractAsyncContextManager[Store]:
        """Open an empty store."""
        return self.named(f"new{next(self._numbers)}")

    def named(self, name: str) -> AbstractAsyncContextManager[Store]:
        """Open the store with a name again, or for the first time."""
        return open(self._url(name))


async def refused(
    store: Store, call: Callable[[], Awaitable[object]], kind: type[StoreError] = StoreError
) -> None:
    """Fail unless the store refuses a call with an error of a kind, and nothing has changed."""
    before = await everything(store)
    with pytest.raises(kind):
        await call()
    assert await everything(store) == before


async def everything(store: Store) -> dict[str, Any]:
    """Return everything in a store, with versions and tallies."""
    queries = await store.items.queries()
    versions = [(await state_of(store, query)).version for query in queries]
    return await contents(store) | {
        "versions": (await store.catalog.version(), *versions),
        "tallies": (await store.items.tally(), await store.catalog.tally()),
    }


async def log_of(store: Store) -> list[Operation]:
    """Return the log."""
    return [entry async for entry in store.log.entries()]


async def counts_of(store: Store, query: str = "q") -> Counts:
    """Return the counts of a query's items."""
    return counts(await store.items.load(query))


async def state_of(store: Store, query: str = "q") -> QueryState:
    """Return a query, which the store must know."""
    state = await store.items.load(query)
    assert state is not None, f"the query {query!r} is unknown"
    return state


async def statuses_of(store: Store, operations: Sequence[Operation]) -> list[str]:
    """Write operations, and return what became of each."""
    return [outcome.status for outcome in (await store.log.write(operations)).written]
