"""Scenes for tests of the engine: a clock that stands still, items, and what users do."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.policy import model_file
from ebrank.priors.base import State
from ebrank.service.api import EventIn, ItemIn, Malformed, RankRequest, RankResponse
from ebrank.service.engine import Engine
from ebrank.service.learning.fitting import TrainingResult
from ebrank.service.ops import configuration
from ebrank.service.ops.replay import replay
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, QueryState, RankingEntry
from ebrank.service.store.sqlite import SqliteStore

T = TypeVar("T")
START = 1_700_000_000.0
DAY = 86400.0
BOTH: tuple[type[Any], ...] = (MemoryStore, SqliteStore)
Opened: TypeAlias = Callable[..., Awaitable[Engine]]
"""Opens another engine on the same store, perhaps with other settings."""


class Clock:
    """A clock that tests turn."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def settings(**sections: dict[str, Any]) -> Settings:
    """Return settings with some changed."""
    return configuration.read(flags=sections)


def play(
    scene: Callable[[Engine], Awaitable[T]],
    chosen: Settings | None = None,
    *,
    store: Store | None = None,
    clock: Callable[[], float] | None = None,
) -> T:
    """Return what a scene returns, played with an engine of its own; the timer is the clock."""

    async def whole() -> T:
        now = clock or Clock()
        engine = await Engine.open(
            store or MemoryStore(), chosen or Settings(), clock=now, timer=now
        )
        try:
            return await scene(engine)
        finally:
            await engine.close()

    return asyncio.run(whole())


def played(
    chosen: Settings | Callable[..., Settings] | None = None,
    *,
    on: Callable[..., Any] | Sequence[type[Any]] = MemoryStore,
    start: float = START,
    count: int = 0,
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a test of a coroutine whose first argument is an engine, played with its own.

    Besides fixtures, it may ask for the `store`; the `clock`, which is also the timer; a `timer` of
    its own; an `other` engine on the same store; and `opened`, which opens more of them, with the
    same settings unless it is given others. All are closed in the end.

    Args:
        chosen: the settings, or what makes them of the test's parameters.
        on: what makes the store; if several, there is a test for each.
        start: what the clock says first.
        count: of items to put into the query `q` first.
    """
    stores = on if isinstance(on, Sequence) else (on,)

    def test_of(scene: Callable[..., Any]) -> Callable[..., None]:
        asked = list(inspect.signature(scene).parameters.values())[1:]
        names = {parameter.name for parameter in asked}

        @functools.wraps(scene)
        def test(**fixtures: Any) -> None:  # noqa: ANN401 (whatever the test asks for)
            kind = fixtures.pop("store_kind", stores[0])
            folder = fixtures["tmp_path"] if "tmp_path" in names else fixtures.pop("tmp_path", None)
            store = kind(folder / "store") if kind is SqliteStore else kind()
            asyncio.run(_played(scene, names, fixtures, chosen or Settings(), store, start, count))

        fixtures = [each for each in asked if each.name not in _OWN]
        more = {"tmp_path"} if SqliteStore in stores else set()
        more |= {"store_kind"} if len(stores) > 1 else set()
        for name in sorted(more - names):
            fixtures.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY))
        test.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        each_store = pytest.mark.parametrize("store_kind", stores, ids=lambda kind: kind.__name__)
        return each_store(test) if len(stores) > 1 else test

    return test_of


_OWN = ("store", "clock", "timer", "other", "opened")


async def _played(
    scene: Callable[..., Any],
    names: Collection[str],
    fixtures: dict[str, Any],
    chosen: Settings | Callable[..., Settings],
    store: Store,
    start: float,
    count: int,
) -> None:
    if not isinstance(chosen, Settings):
        chosen = chosen(**{name: fixtures[name] for name in inspect.signature(chosen).parameters})
    clock, engines = Clock(start), list[Engine]()
    timer = Clock(0.0) if "timer" in names else clock

    async def opened(others: Settings = chosen) -> Engine:
        engines.append(await Engine.open(store, others, clock=clock, timer=timer))
        return engines[-1]

    engine = await opened()
    other = await opened() if "other" in names else None
    own = dict(zip(_OWN, (store, clock, timer, other, opened), strict=True))
    try:
        if count:
            await engine.put_items("q", items(count))
        await scene(engine, **fixtures, **{name: own[name] for name in _OWN if name in names})
    finally:
        for each in engines:
            await each.close()
        await store.close()


async def lists_of(store: Store) -> list[RankingEntry]:
    """Return the lists in a log."""
    return [entry async for entry in store.log.entries() if isinstance(entry, RankingEntry)]


async def events_of(store: Store) -> list[EventEntry]:
    """Return the events in a log."""
    return [entry async for entry in store.log.entries() if isinstance(entry, EventEntry)]


async def stored(store: Store, query: str = "q") -> QueryState:
    """Return a query as the store has it."""
    state = await store.items.load(query)
    assert state is not None
    return state


def items(count: int, width: int = 2, seed: int = 0) -> list[ItemIn]:
    """Return items `i0`, `i1`, ... with random features."""
    rng = np.random.default_rng(seed)
    return [ItemIn(f"i{at}", rng.random(width).tolist()) for at in range(count)]


def linear_state(*weights: float, intercept: float = 0.0) -> State:
    """Return what a linear learner could have learned."""
    return {
        "weights": np.array(weights),
        "intercept": np.array([intercept]),
        "ridge": np.array([1e-3]),
    }


def better(
    *weights: float, features: tuple[str, ...] = (), policy: str = "ebrank"
) -> TrainingResult:
    """Return what a run makes that is better than the version it was judged against."""
    ranker = EBRanker(policy)
    ranker.state_ = linear_state(*(weights or (1.0,)))
    document = model_file.to_bytes(ranker).decode()
    return TrainingResult(9, True, "it is better", 0.1, 0.2, document, features)


def click(event_id: str, ranking_id: str, item: str, kind: str = "click") -> EventIn:
    """Return an event."""
    return EventIn(event_id, ranking_id, item, kind)


async def ranked(engine: Engine, query: str = "q", **asked: Any) -> RankResponse:  # noqa: ANN401
    """Return the list for a request."""
    return await engine.rank(RankRequest(query, **asked))


async def clicked(engine: Engine, answer: RankResponse, *names: str) -> int:
    """Click some items of a list, all if none is named; return how many clicks counted."""
    events = [
        click(f"{answer.ranking_id} {name}", answer.ranking_id, name)
        for name in names or ids(answer)
    ]
    return (await engine.feedback(events)).accepted


async def rejected(engine: Engine, *events: EventIn | Malformed) -> list[str]:
    """Send events, and return the code with which each is rejected."""
    answer = await engine.feedback(events)
    assert set(statuses(answer)) == {"rejected"}
    return [(result.reason or "").partition(":")[0] for result in answer.results]


async def sound(store: Store) -> bool:
    """Return whether a replay finds the counters of a store, before and after a roll-up of all."""
    whole = (await replay(store)).equal
    await store.log.roll_up(1e12)
    return whole and (await replay(store)).equal


async def counts(engine: Engine, query: str = "q") -> dict[str, tuple[int, int]]:
    """Return the impressions and clicks of each candidate of a query."""
    return {item.id: (item.shown, item.clicks) for item in (await engine.query(query)).items}


def ids(answer: Any) -> list[str]:  # noqa: ANN401 (a response with items)
    """Return the ids of a list."""
    return [item.id for item in answer.items]


def statuses(answer: Any) -> Sequence[str]:  # noqa: ANN401 (a response with results)
    """Return what became of each event."""
    return [result.status for result in answer.results]
