"""The server itself, for who is on call: its version and policy, since when, and room on disk."""

from __future__ import annotations

from collections.abc import Callable

import ebrank
from ebrank.service import api
from ebrank.service.learning.models import Model
from ebrank.service.store.base import Store
from ebrank.service.store.records import StoreSize

KEPT_SECONDS = 10.0
"""How long the size of the store is kept."""


class System:
    """Looks at the store now and then."""

    def __init__(self, store: Store, started: float, timer: Callable[[], float]) -> None:
        self._store = store
        self._started = started
        self._timer = timer
        self._looked: float | None = None
        self._size: StoreSize | None = None

    async def out(self, model: Model) -> api.SystemOut:
        """Return what is known of the server."""
        if self._looked is None or self._timer() - self._looked > KEPT_SECONDS:
            self._looked, self._size = self._timer(), await self._store.size()
        size = self._size
        return api.SystemOut(
            version=ebrank.__version__,
            policy=str(model.ranker.policy),
            started=self._started,
            store_bytes=None if size is None else size.used,
            free_bytes=None if size is None else size.free,
            log_entries=None if size is None else size.entries,
        )
