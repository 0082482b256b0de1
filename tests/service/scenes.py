"""Scenes for tests of the engine: a clock that stands still, items, and what users do."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.model.policy import model_file
from ebrank.service.api import EventIn, ItemIn, Malformed, RankRequest, RankResponse
from ebrank.service.core.live import LiveQuery
from ebrank.service.engine import Engine
from ebrank.service.learning.fitting import TrainingResult
from ebrank.service.ops import configuration
from ebrank.service.ops.replay import replay
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, ModelRecord, QueryState, RankingEntry
from ebrank.service.store.sqlite import SqliteStore
from ebrank.typing import State

T = TypeVar("T")
START = 1_700_000_000.0
DAY = 86400.0
BOTH: tuple[type[Any], ...] = (MemoryStore, SqliteStore)


class Clock:
    """A clock that tests turn."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def settings(**sections: dict[str, Any]) -> Settings:
    """Return settings with some changed."""
    return configuration.read(flags=sections)


class Scene(Engine):
    """An engine that tests play with.

    Attributes:
        store: where it keeps its data, of whatever class the test chose.
        clock: what dates its log, and its timer unless it has its own.
        timer: what decides when something is due.
        other: another engine on the same store, if the test wants one.
        opened: opens more of them, with the same settings unless it is given others.
    """

    store: Any
    clock: Clock
    timer: Clock
    other: Scene
    opened: Callable[..., Awaitable[Scene]]

    async def ranked(self, query: str = "q", **asked: Any) -> RankResponse:  # noqa: ANN401
        """Return the list for a request."""
        return await self.rank(RankRequest(query, **asked))

    async def clicked(self, answer: RankResponse, *names: str) -> int:
        """Click some items of a list, all if none is named; return how many clicks counted."""
        ranking = answer.ranking_id
        events = [click(f"{ranking} {name}", ranking, name) for name in names or ids(answer)]
        return (await self.feedback(events)).accepted

    async def rejected(self, *events: EventIn | Malformed) -> list[str]:
        """Send events, and return the code with which each is rejected."""
        answer = await self.feedback(events)
        assert set(statuses(answer)) == {"rejected"}
        return [(result.reason or "").partition(":")[0] for result in answer.results]

    async def statuses(self, events: Sequence[EventIn | Malformed]) -> list[str]:
        """Send events, and return what became of each."""
        return [result.status for result in (await self.feedback(events)).results]

    async def counts(self, query: str = "q") -> dict[str, tuple[int, int]]:
        """Return the impressions and clicks of each candidate of a query."""
        return {item.id: (item.shown, item.clicks) for item in (await self.query(query)).items}

    async def live(self, query: str = "q") -> LiveQuery:
        """Return a query as the engine has it in memory."""
        live = await self._queries.get(query, self._now())
        assert live is not None
        return live

    async def stored(self, query: str = "q") -> QueryState:
        """Return a query as the store has it."""
        return await stored(self.store, query)

    async def lists(self) -> list[RankingEntry]:
        """Return the lists in the log."""
        entries = self.store.log.entries()
        return [entry async for entry in entries if isinstance(entry, RankingEntry)]

    async def events(self) -> list[EventEntry]:
        """Return the events in the log."""
        entries = self.store.log.entries()
        return [entry async for entry in entries if isinstance(entry, EventEntry)]

    async def replays(self) -> bool:
        """Return whether a replay of the log finds the counters of the store."""
        return (await replay(self.store)).equal

    async def sound(self) -> bool:
        """Return whether it does, before and after a roll-up of everything."""
        whole = await self.replays()
        await self.store.log.roll_up(1e12)
        return whole and await self.replays()


def play(
    scene: Callable[[Scene], Awaitable[T]],
    chosen: Settings | None = None,
    *,
    store: Store | None = None,
    start: float = START,
    own_timer: bool = False,
    pair: bool = False,
    count: int = 0,
) -> T:
    """Return what a scene returns, played with an engine of its own; see `played`."""
    stage, given, clock = store or MemoryStore(), chosen or Settings(), Clock(start)
    timer, engines = Clock(0.0) if own_timer else clock, list[Scene]()

    async def opened(others: Settings = given) -> Scene:
        engine = await Scene.open(stage, others, clock=clock, timer=timer)
        engines.append(engine)
        engine.store, engine.clock, engine.timer = stage, clock, timer
        engine.opened = opened
        return engine

    async def whole() -> T:
        try:
            engine = await opened()
            if pair:
                engine.other = await opened()
            if count:
                await engine.put_items("q", items(count))
            return await scene(engine)
        finally:
            for each in engines:
                await each.close()
            await stage.close()

    return asyncio.run(whole())


def played(
    chosen: Settings | Callable[..., Settings] | None = None,
    *,
    on: Callable[..., Any] | Sequence[type[Any]] = MemoryStore,
    start: float = START,
    own_timer: bool = False,
    pair: bool = False,
    count: int = 0,
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a test of a coroutine whose first argument is a scene; the others are fixtures.

    Args:
        chosen: the settings, or what makes them of the test's parameters.
        on: what makes the store; if several, there is a test for each.
        start: what the clock says first.
        own_timer: whether the timer is not the clock.
        pair: whether there is an `other` engine from the beginning.
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
            given = chosen or Settings()
            if not isinstance(given, Settings):
                wanted = inspect.signature(given).parameters
                given = given(**{name: fixtures[name] for name in wanted})
            call = functools.partial(scene, **fixtures)
            play(call, given, store=store, start=start, own_timer=own_timer, pair=pair, count=count)

        more = {"tmp_path"} if SqliteStore in stores else set()
        more |= {"store_kind"} if len(stores) > 1 else set()
        for name in sorted(more - names):
            asked.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY))
        test.__signature__ = inspect.Signature(asked)  # type: ignore[attr-defined]
        each_store = pytest.mark.parametrize("store_kind", stores, ids=lambda kind: kind.__name__)
        return each_store(test) if len(stores) > 1 else test

    return test_of


async def stored(store: Store, query: str = "q") -> QueryState:
    """Return a query as the store has it."""
    state = await store.items.load(query)
    assert state is not None
    return state


def items(count: int, width: int = 2, seed: int = 0) -> list[ItemIn]:
    """Return items `i0`, `i1`, ... with random features."""
    rng = np.random.default_rng(seed)
    return [ItemIn(f"i{at}", rng.random(width).tolist()) for at in range(count)]


async def add_model(
    store: Store,
    ranker: EBRanker,
    version: int = 1,
    features: tuple[str, ...] = ("p0", "p1"),
) -> None:
    """Make a ranker the active version of a store's prior."""
    record = ModelRecord(version, 0.0, 1, None, None, activated=True, features=features)
    await store.models.add(record, model_file.to_bytes(ranker))


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


def ids(answer: Any) -> list[str]:  # noqa: ANN401 (a response with items)
    """Return the ids of a list."""
    return [item.id for item in answer.items]


def statuses(answer: Any) -> Sequence[str]:  # noqa: ANN401 (a response with results)
    """Return what became of each event."""
    return [result.status for result in answer.results]


def trainers() -> list[int]:
    """Return the children of this process that train."""
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    children = [child for task in tasks for child in (task / "children").read_text().split()]
    commands = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
    return [int(child) for child, words in commands.items() if b"learning.fitting" in words]
