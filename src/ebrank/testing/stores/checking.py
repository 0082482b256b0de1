"""What checks of stores are made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from inspect import signature
from itertools import count
from typing import Any, TypeAlias

from ebrank.service.store.base import Store, StoreError
from ebrank.service.store.records import Operation, QueryState
from ebrank.testing.histories import contents, counts

Open: TypeAlias = Callable[[str], AbstractAsyncContextManager[Store]]
"""Opens the store with a name, which is a plain word; an empty one the first time."""


class Stores:
    """Opens stores for a check."""

    def __init__(self, open: Open, prefix: str, *, keeps: bool) -> None:
        self._open = open
        self._prefix = prefix
        self._numbers = count()
        self.keeps = keeps

    async def run(self, check: Check) -> None:
        """Run a check."""
        if "stores" in signature(check).parameters:
            await check(self)
        else:
            async with self.new() as store:
                await check(store)

    def new(self) -> AbstractAsyncContextManager[Store]:
        """Open an empty store."""
        return self.named(f"new{next(self._numbers)}")

    def named(self, name: str) -> AbstractAsyncContextManager[Store]:
        """Open the store with a name again, or for the first time."""
        return self._open(f"{self._prefix}-{name}")


Check: TypeAlias = Callable[..., Coroutine[None, None, None]]
"""Raises an `AssertionError` if a store breaks the rule in its docstring.

Its one argument is a new `store`, or `stores`, to open several.
"""


def equal(what: str, actual: object, expected: object) -> None:
    """Raise unless something is as expected."""
    assert actual == expected, f"{what} is {actual!r}, not {expected!r}"


async def refused(
    store: Store, call: Callable[[], Awaitable[object]], kind: type[StoreError] = StoreError
) -> None:
    """Raise unless the store refuses a call with an error of a kind, and nothing has changed."""
    before = await everything(store)
    try:
        await call()
    except kind:
        equal("the store after a call that it refused", await everything(store), before)
    else:
        raise AssertionError(f"no {kind.__name__} was raised")


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


Counts: TypeAlias = dict[str, dict[tuple[int, int], int]]
"""Counts of items that are not 0, by outcome and rank."""


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
