"""Whether requests can be served, which includes writing to the store.

Anybody may ask, so the store is tried at most once a second. A try is not enough: a disk that
accepts a small write may refuse a list, and damaged pages show only when they are read. So the
outcome of requests counts too. A failure makes the server unready at once; it is ready again when a
request was served from the store, or after ten seconds without another failure, if the try
succeeds.

A failing store fails for every request. The log gets the first failure, and a line when the store
works again, with the number of failures.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ebrank.service import api
from ebrank.service.http.problems import HttpProblem
from ebrank.service.logs import about
from ebrank.service.store.base import StoreError

if TYPE_CHECKING:
    from ebrank.service.engine import Engine

TRY_SECONDS = 1.0
ANSWER_SECONDS = 1.5
"""How long a try may take."""
HEALED_SECONDS = 10.0
"""After this long without a failure, requests may try the store again."""

log = logging.getLogger("ebrank.service")


class Readiness:
    """Knows whether the store works, by trying it and by the outcome of requests.

    Attributes:
        store: which database it is in.
        started: whether requests are served at all.
        waits_for: what a start waits for, if that takes a while.
        leaving: whether the server is about to close, so that callers should use others.
        troubled: whether a request failed and none has succeeded since.
    """

    def __init__(self, engine: Engine, *, timer: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._timer = timer
        self._tried = -math.inf
        self._problem: str | None = None
        self._failed = self._first = -math.inf
        self._failure, self._failures = "", 0
        self.store = engine.resources.store.about
        self.started = False
        self.waits_for = ""
        self.leaving = False
        self.troubled = False
        engine.on_failure = self.failed

    async def check(self) -> None:
        """Raise a problem if a request could not be served."""
        if not self.started or self.leaving:
            raise starting("" if self.leaving else self.waits_for)
        if self._timer() - self._tried > TRY_SECONDS:
            self._tried = self._timer()
            self._problem = await self._try()
        if self._problem is not None:
            raise HttpProblem(503, self._problem)
        if self.troubled and self._timer() - self._failed < HEALED_SECONDS:
            raise HttpProblem(503, self._failure)

    async def _try(self) -> str | None:
        """Return what is wrong with the store, None if it takes a write and flushes it."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._engine.check()
        except StoreError as problem:
            failure = problem
        except TimeoutError:
            failure = StoreError(f"the store did not respond within {ANSWER_SECONDS:g} s")
        else:
            return None
        self.failed(failure)
        return str(failure)

    def failed(self, problem: StoreError) -> None:
        """Record that the store failed, and log it if it is the first failure."""
        now = self._timer()
        if not self.troubled:
            self.troubled, self._first, self._failures = True, now, 0
            log.error("the store failed: %s", problem, extra=about("store"))
        self._failed, self._failure = now, str(problem)
        self._failures += 1

    def served(self, answer: object) -> None:
        """Record a response after failures; if it used the store, the store works again."""
        if isinstance(answer, api.RankResponse | api.RerankResponse):
            took_it = answer.counted
        elif isinstance(answer, api.FeedbackResponse):
            took_it = answer.accepted > 0
        else:
            took_it = isinstance(answer, api.PutItemsResponse)
        if not took_it:
            return
        seconds, self.troubled, self._problem = self._timer() - self._first, False, None
        log.warning(
            "the store works again, after %d failures in %.0f s",
            self._failures,
            seconds,
            extra=about("store", failures=self._failures, seconds=seconds),
        )


def starting(waits_for: str = "") -> HttpProblem:
    """Return the problem with a request that comes while the server starts or closes."""
    what = f"starting: {waits_for}" if waits_for else "starting or shutting down"
    return HttpProblem(503, f"the server is {what}", headers={"retry-after": "1"})
