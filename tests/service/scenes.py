"""Scenes for tests of the engine: a clock that stands still, items, and what users do."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ebrank import EBRanker
from ebrank.policy import model_file
from ebrank.priors.base import State
from ebrank.service.api import EventIn, ItemIn
from ebrank.service.engine import Engine
from ebrank.service.learning.fitting import TrainingResult
from ebrank.service.ops import configuration
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.service.store.memory import MemoryStore

T = TypeVar("T")
START = 1_700_000_000.0


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
    timer: Callable[[], float] | None = None,
) -> T:
    """Return what a scene returns, played with an engine of its own; the timer is the clock."""

    async def whole() -> T:
        now = clock or Clock()
        engine = await Engine.open(
            store or MemoryStore(), chosen or Settings(), clock=now, timer=timer or now
        )
        try:
            return await scene(engine)
        finally:
            await engine.close()

    return asyncio.run(whole())


def played(chosen: Settings | None = None) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a test of a coroutine whose first argument is an engine, played with its own."""

    def test_of(scene: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(scene)
        def test(**fixtures: Any) -> None:  # noqa: ANN401 (whatever the test asks for)
            play(functools.partial(scene, **fixtures), chosen)

        signature = inspect.signature(scene)
        test.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=list(signature.parameters.values())[1:]
        )
        return test

    return test_of


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


def better() -> TrainingResult:
    """Return what a run makes that is better than the version it was judged against."""
    ranker = EBRanker()
    ranker.state_ = linear_state(1.0)
    document = model_file.to_bytes(ranker).decode()
    return TrainingResult(9, True, "it is better", 0.1, 0.2, document)


def click(event_id: str, ranking_id: str, item: str, kind: str = "click") -> EventIn:
    """Return an event."""
    return EventIn(event_id, ranking_id, item, kind)


def ids(answer: Any) -> list[str]:  # noqa: ANN401 (a response with items)
    """Return the ids of a list."""
    return [item.id for item in answer.items]


def statuses(answer: Any) -> Sequence[str]:  # noqa: ANN401 (a response with results)
    """Return what became of each event."""
    return [result.status for result in answer.results]
