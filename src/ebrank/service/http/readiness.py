"""Whether requests can be served, which includes writing to the store.

Anybody may ask, so the store is tried at most once a second. A try is not enough: a disk that
accepts a small write may refuse a list, and damaged pages show only when they are read. So the
outcome of requests counts too. A failure makes the server unready at once; it is ready again when a
request was served from the store, or after ten seconds without another failure.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ebrank.service.http.problems import HttpProblem
from ebrank.service.store.base import StoreError

if TYPE_CHECKING:
    from ebrank.service.engine import Engine

TRY_SECONDS = 1.0
ANSWER_SECONDS = 1.5
"""How long a try may take."""
HEALED_SECONDS = 10.0
"""After this long without a failure, requests may try the store again."""


class Readiness:
    """Knows whether requests can be served.

    Attributes:
        store: the database of the store.
        started: whether requests are served at all.
        waits_for: what a start waits for, if that takes a while.
        leaving: whether the server is about to close, so that callers should use others.
    """

    def __init__(self, engine: Engine, *, timer: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._timer = timer
        self._tried = -math.inf
        self.store = engine.resources.store.about
        self.started = False
        self.waits_for = ""
        self.leaving = False

    async def check(self) -> None:
        """Raise a problem if a request could not be served."""
        if not self.started or self.leaving:
            raise starting("" if self.leaving else self.waits_for)
        if self._timer() - self._tried > TRY_SECONDS:
            self._tried = self._timer()
            await self._try()
        failures = self._engine.failures
        if failures.lasting and self._timer() - failures.last < HEALED_SECONDS:
            raise HttpProblem(503, failures.problem)

    async def _try(self) -> None:
        """See whether the store takes a write and flushes it."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._engine.check()
        except StoreError as problem:
            self._engine.failures.add(problem)
        except TimeoutError:
            late = f"the store did not respond within {ANSWER_SECONDS:g} s"
            self._engine.failures.add(StoreError(late))


def starting(waits_for: str = "") -> HttpProblem:
    """Return the problem with a request that comes while the server starts or closes."""
    what = f"starting: {waits_for}" if waits_for else "starting or shutting down"
    return HttpProblem(503, f"the server is {what}", headers={"retry-after": "1"})
