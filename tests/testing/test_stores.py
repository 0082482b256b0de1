"""Our stores pass the public checks, and the checks find what is wrong with others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebrank.service.store import Store, open
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import (
    Commit,
    EventEntry,
    NewItem,
    Operation,
    QueryState,
    RankingEntry,
    RolledUp,
)
from ebrank.testing import check_store
from ebrank.testing.histories import counts
from ebrank.testing.stores import CHECKS, GROUPS, check_one
from ebrank.typing import Features
from tests.postgres import Postgres


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_the_store_in_memory(check: str) -> None:
    check_one(check, lambda name: open("memory:"), keeps=False)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_the_store_on_disk(check: str, tmp_path: Path) -> None:
    check_one(check, lambda name: open(f"sqlite:{tmp_path / name}"))


@pytest.mark.parametrize("check", CHECKS)
def test_the_store_in_postgresql(check: str, database: Postgres) -> None:
    check_one(check, lambda name: open(database.url(f"check {name}")))


@settings(max_examples=20)
@given(names=st.lists(st.text(), min_size=5, max_size=5, unique=True))
def test_any_text_is_a_name(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    query, item, ranking_id, event_id, kind = (name + "☂" for name in names)
    served = RankingEntry(ranking_id, query, 2.0, 0, (item, ""), would_rank=("", item))
    click = EventEntry(event_id, ranking_id, query, item, kind, 1, 1, False, 3.0, 3.0)

    async def session() -> None:
        async with open(f"sqlite:{tmp_path_factory.mktemp('names')}") as store:
            await store.items.put(query, [NewItem(item, (1.0,)), NewItem("", (2.0,))], 1.0)
            await store.log.write([served, click])
            assert [entry async for entry in store.log.entries()] == [served, click]
            assert await store.log.ranking(ranking_id) == served
            expected = {item: {(0, 1): 1, (1, 1): 1}, "": {(0, 2): 1}}
            assert counts(await store.items.load(query)) == expected

    asyncio.run(session())


def test_no_check_hides_another_of_its_name() -> None:
    for group in GROUPS:
        own = [name for name in vars(group) if name in CHECKS]
        assert own
        assert {CHECKS[name].__module__ for name in own} == {group.__name__}


# --- stores with a fault -------------------------------------------------------------------------


class Faulty:
    """The store in memory, with one method that does something else."""

    def __init__(self, group: str, method: str, fault: Callable[..., object]) -> None:
        self._change = group, method, fault

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[Store]:
        store = MemoryStore()
        group, method, fault = self._change
        part = getattr(store, group)
        right = getattr(part, method)

        async def wrong(*given: object, **named: object) -> object:
            result = fault(await right(*given, **named), *given)
            return await result if asyncio.iscoroutine(result) else result

        setattr(part, method, wrong)
        yield store


def ignore_versions(commit: Commit, operations: Sequence[Operation]) -> Commit:
    return commit._replace(versions=dict.fromkeys(commit.versions, 1))


def no_model(commit: Commit, operations: Sequence[Operation]) -> Commit:
    return commit._replace(model=0)


def no_catalog(commit: Commit, operations: Sequence[Operation]) -> Commit:
    return commit._replace(catalog=0)


def all_rows(
    found: dict[str, Features | None], names: Sequence[str], since: int = 0
) -> dict[str, Features | None]:
    return {name: found.get(name, np.ones(1, np.float32)) for name in names} if since else found


def one_click_more(state: QueryState | None, query: str) -> QueryState | None:
    if state is not None and state.counts.any():
        state.counts[0, 1, 0] += 1
    return state


def sorted_names(names: list[str]) -> list[str]:
    return sorted(names)


def nothing_rolled_up(rolled: RolledUp, before: float) -> RolledUp:
    return RolledUp(0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "method", "fault", "message"),
    [
        ("log", "write", ignore_versions, "versions: Each write to a query.* advances its version"),
        ("log", "write", no_model, "active_model_found: .* the active model is 0, not 1"),
        ("log", "write", no_catalog, "catalog_found: .* the version is 0, not 1"),
        ("catalog", "read", all_rows, "catalog_changes: .* what changed since 1 is"),
        ("items", "load", one_click_more, "counts is"),
        ("items", "queries", sorted_names, "query_order: Queries stand in the order"),
        ("log", "roll_up", nothing_rolled_up, "what was rolled up is"),
        ("meta", "get", lambda value, key: None, "catalog_found: .* the setting is None"),
    ],
)
def test_a_fault_is_found_and_named(
    group: str, method: str, fault: Callable[..., object], message: str
) -> None:
    faulty = Faulty(group, method, fault)
    with pytest.raises(AssertionError, match=message):
        check_store(faulty.open, keeps=False)


@pytest.mark.slow
def test_a_store_that_forgets_is_found() -> None:
    def forgetful(name: str) -> AbstractAsyncContextManager[Store]:
        return open("memory:")

    with pytest.raises(AssertionError, match="opened_again: A store that was closed holds"):
        check_store(forgetful)


def test_an_error_says_which_check_met_it() -> None:
    @asynccontextmanager
    async def broken(name: str) -> AsyncIterator[Store]:
        raise OSError("no such disk")
        yield MemoryStore()

    with pytest.raises(AssertionError, match=r"empty: .* But OSError: no such disk"):
        check_store(broken)
