"""The service without the web: it ranks, counts what users do, and remembers both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ebrank.service import api

if TYPE_CHECKING:
    from ebrank.service.settings import Settings
    from ebrank.service.store.base import Store


class Engine:
    """All that the service can do; every method may raise a `problems.Problem`.

    One event loop owns an engine. Methods that wait for the store are coroutines.
    """

    def __init__(
        self, store: Store, settings: Settings, *, clock: Callable[[], float] = time.time
    ) -> None: ...

    async def start(self) -> None:
        """Warm up and start the timers: commits, training, roll-ups. Before the first request."""
        raise NotImplementedError

    async def put_items(self, query: str, items: Sequence[api.ItemIn]) -> api.PutItemsResponse:
        """Add candidates of a query or change their features, all or none."""
        raise NotImplementedError

    async def withdraw(self, query: str, item: str) -> api.WithdrawResponse:
        """Withdraw a candidate; its history stays."""
        raise NotImplementedError

    async def rank(self, request: api.RankRequest) -> api.RankResponse:
        """Return a list; it is logged when this returns."""
        raise NotImplementedError

    async def feedback(self, events: Sequence[api.EventIn | api.Malformed]) -> api.FeedbackResponse:
        """Count events; those accepted are on disk when this returns."""
        raise NotImplementedError

    async def query(self, query: str) -> api.QueryResponse:
        """Return the state of a query's items."""
        raise NotImplementedError

    async def train(self) -> api.TrainResponse:
        """Start training in a process of its own; return at once."""
        raise NotImplementedError

    async def models(self) -> api.ModelsResponse:
        """Return the versions of the prior."""
        raise NotImplementedError

    async def activate(self, version: int) -> api.ModelsResponse:
        """Make a version the active one: roll back, or forward."""
        raise NotImplementedError

    async def insights(self) -> api.Insights:
        """Return what the dashboard shows."""
        raise NotImplementedError

    async def close(self) -> None:
        """Finish what is under way, stop the trainer, flush; the store stays open."""
        raise NotImplementedError
