"""The application without a network: a real engine, on a store in memory unless told otherwise."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import httpx

from ebrank.service.engine import Engine
from ebrank.service.http.app import App
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store import open
from ebrank.service.store.base import Store
from ebrank.service.store.memory import MemoryStore

T = TypeVar("T")


class Local:
    """Sends requests to an application in this process, one at a time."""

    def __init__(self, app: App, runner: asyncio.Runner) -> None:
        self.app = app
        self._runner = runner
        transport = httpx.ASGITransport(app=app, client=("192.0.2.7", 1))
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401
        """Send a request."""
        return self._runner.run(self._http.request(method, path, **options))

    def json(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 (JSON)
        """Send a request that must succeed and return what the answer says."""
        answer = self.request(method, path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def error(self, method: str, path: str, **options: Any) -> tuple[int, Any]:  # noqa: ANN401
        """Send a request that must fail and return the status and the error."""
        answer = self.request(method, path, **options)
        body = answer.json()
        assert answer.status_code >= 400, answer.text
        assert set(body) == {"error"}
        assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "field"}
        return answer.status_code, body["error"]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns, on the application's loop."""
        return self._runner.run(work)

    def close(self) -> None:
        """Let go of the client."""
        self._runner.run(self._http.aclose())


@contextmanager
def in_process(
    settings: Settings | None = None,
    store: Store | str | None = None,
    clock: Callable[[], float] = time.time,
) -> Iterator[Local]:
    """Yield a client of a ready application; a store that is given by its URL is closed.

    The usual limit of memory is for a server: a process full of tests may be beyond it already.
    """
    chosen = settings or Settings()
    if chosen.limits == LimitsSettings():
        chosen = replace(chosen, limits=LimitsSettings(memory="64 GB"))
    with asyncio.Runner() as runner:
        opened: AbstractAsyncContextManager[Store] = (
            open(store) if isinstance(store, str) else nullcontext(store or MemoryStore())
        )
        engine = runner.run(Engine.open(runner.run(opened.__aenter__()), chosen, clock=clock))
        app = App(engine, chosen)
        local = Local(app, runner)
        runner.run(engine.start())
        app.readiness.started = True
        try:
            yield local
        finally:
            local.close()
            runner.run(engine.close())
            runner.run(opened.__aexit__(None, None, None))
