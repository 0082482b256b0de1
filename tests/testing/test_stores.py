"""Our stores pass the public checks, and the checks find what is wrong with others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from ebrank.service.store import Store, StoreError, open
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import Commit, Operation, QueryState, RolledUp
from ebrank.testing import check_store
from ebrank.testing.stores import CHECKS, GROUPS, check_one
from ebrank.typing import Features
from tests.postgres import Postgres

Call: TypeAlias = Callable[..., Awaitable[object]]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
@pytest.mark.parametrize("check", CHECKS)
def test_our_stores_pass(check: str, kind: str, database: Postgres, tmp_path: Path) -> None:
    def url(name: str) -> str:
        if kind == "postgresql":
            return database.url(f"check {name}")
        return "memory:" if kind == "memory" else f"sqlite:{tmp_path / name}"

    check_one(check, lambda name: open(url(name)), keeps=kind != "memory")


def test_no_check_hides_another_of_its_name() -> None:
    for group in GROUPS:
        own = [name for name in vars(group) if name in CHECKS]
        assert own
        assert {CHECKS[name].__module__ for name in own} == {group.__name__}


# --- stores with a fault -------------------------------------------------------------------------


class Faulty:
    """The store in memory, with one method that does something else."""

    def __init__(self, group: str, method: str, other: Call) -> None:
        self._change = group, method, other

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Store]:
        store = MemoryStore()
        group, method, other = self._change
        part = getattr(store, group)
        setattr(part, method, partial(other, store, getattr(part, method)))
        yield store


def changed(fault: Callable[..., object]) -> Call:
    """Return a method that does what is right, and then changes what it returns."""

    async def wrong(store: Store, right: Call, *given: object, **named: object) -> object:
        return fault(await right(*given, **named), *given)

    return wrong


def all_rows(
    found: dict[str, Features], names: Sequence[str], since: int = 0
) -> dict[str, Features]:
    return {name: found.get(name, np.ones(1, np.float32)) for name in names} if since else found


def one_click_more(state: QueryState | None, query: str) -> QueryState | None:
    if state is not None and state.counts.any():
        state.counts[0, 1, 0] += 1
    return state


async def store_and_refuse(store: Store, put: Call, *given: object, **named: object) -> object:
    try:
        return await put(*given, **named)
    except StoreError:
        await put(*given)
        raise


def keep(column: str) -> Call:
    """Return a method that leaves a column of the table `state` as it was."""

    async def wrong(store: Store, right: Call, *given: object) -> object:
        async with store.driver.read() as connection:
            [(before,)] = await connection.fetch(f"SELECT {column} FROM state")
        result = await right(*given)
        async with store.driver.write() as connection:
            await connection.execute(f"UPDATE state SET {column} = ?1", before)
        return result

    return wrong


def no_versions(commit: Commit, operations: Sequence[Operation]) -> Commit:
    return commit._replace(versions=dict.fromkeys(commit.versions, 1))


def replaced(**values: object) -> Call:
    """Return a write to the log that says something else about what it found."""
    return changed(lambda commit, _: commit._replace(**values))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "method", "other", "message"),
    [
        ("log", "write", changed(no_versions), "news: .* the version is"),
        ("log", "write", replaced(model=0), r"random_histories: .* turn \d+ .* model=0"),
        ("log", "write", replaced(catalog=0), r"random_histories: .* turn \d+ .* catalog=0"),
        ("catalog", "read", changed(all_rows), "catalog_changes: .* what changed since 1 is"),
        ("items", "load", changed(one_click_more), "counts is"),
        ("items", "queries", changed(sorted), "restored: A history is restored"),
        ("log", "roll_up", changed(lambda *_: RolledUp(0, 0)), "what was rolled up is"),
        ("meta", "get", changed(lambda *_: None), "models: Models are kept.* setting is None"),
        ("items", "put", store_and_refuse, "settings: .* after a call that it refused"),
        ("catalog", "put", store_and_refuse, "settings: .* after a call that it refused"),
        ("deletions", "item", keep("last_time"), r"random_histories: .* turn \d+ of history"),
        ("deletions", "user", keep("last_time"), r"random_histories: .* turn \d+ of history"),
        ("deletions", "item", keep("catalog"), "random_histories: "),
    ],
)
def test_a_fault_is_found_and_named(group: str, method: str, other: Call, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_store(Faulty(group, method, other).open, keeps=False)


@pytest.mark.slow
def test_a_store_that_forgets_is_found() -> None:
    with pytest.raises(AssertionError, match="opened_again: A store that was closed holds"):
        check_store(lambda name: open("memory:"))


def test_an_error_says_which_check_met_it() -> None:
    @asynccontextmanager
    async def broken(name: str) -> AsyncIterator[Store]:
        raise OSError("no such disk")
        yield MemoryStore()

    with pytest.raises(AssertionError, match=r"empty: .* But OSError: no such disk"):
        check_store(broken)
