"""A real server in a thread of this process: it starts at once, since everything is imported."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Self

from ebrank.service.learning.fitting import TrainingJob, TrainingResult, in_thread
from ebrank.service.ops import configuration, server
from ebrank.service.store import open


async def trained_here(url: str, job: TrainingJob, seconds: float) -> TrainingResult:
    """Fit in a thread: what tests may put in the place of a trainer, which imports all again."""
    async with open(url, "browse") as store:
        return await in_thread(store, job)


PATIENCE = 60.0  # seconds: the machine may be busy


class Threaded:
    """What `ebrank serve` runs, with its store in a folder, on one loopback port for life."""

    def __init__(self, folder: Path, config: str = "", *, store: str | None = None) -> None:
        file = folder / "ebrank.toml"
        file.write_text(config, encoding="utf-8")
        flags: configuration.Tables = {"store": {"url": store or str(folder / "store")}}
        self._settings = configuration.read(file, flags=flags)
        self.port = 0
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it serves; where it did before, if it is not the first time."""
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,))
        self._thread.start()
        ready.result(PATIENCE)

    def stop(self) -> None:
        """Ask it to leave, and wait until it has."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(PATIENCE)
            assert not self._thread.is_alive()
            self._thread = None

    def _run(self, ready: Future[None]) -> None:
        try:
            asyncio.run(self._serve(ready))
        except BaseException as problem:
            if ready.done():
                raise  # pytest tells of it
            ready.set_exception(problem)

    async def _serve(self, ready: Future[None]) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        with server.listening("127.0.0.1", self.port) as opened:
            self.port = opened.getsockname()[1]
            await server.serve(
                self._settings, opened, self._stopped, lambda *_: ready.set_result(None)
            )
