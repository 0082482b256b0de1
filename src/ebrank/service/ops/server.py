"""One process: the store, the engine and the web server around them.

The server listens before the engine has started, so that `/healthz` answers at once and `/readyz`
says when the rest is ready. On SIGTERM or Ctrl-C it is no longer ready, and gives a load balancer
some time to notice; then it accepts nothing new, finishes what it is doing, flushes and ends. It
waits for some seconds only for callers that do not send the rest of a request, or do not read its
response. A second signal ends it at once. If its settings are in a file, it reads the tokens again
when the file changes.

uvicorn serves the connections, with its public options only: docs/running.md lists what a proxy in
front has to bound.

Only tokens are taken over. An invalid file changes nothing, and the log says why; other settings
that differ take effect at the next start, as the log says. A file without tokens admits everybody,
and is also what an editor, a full disk or a typing error leaves behind. So it is read at a start
only: a server that has tokens keeps them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import uvicorn

from ebrank.environment.config import SettingsError
from ebrank.errors import EBRankError
from ebrank.kernels.compiled import announced
from ebrank.service import logs
from ebrank.service.engine import Engine
from ebrank.service.http.admission import Admission, is_loopback
from ebrank.service.http.app import App
from ebrank.service.http.readiness import Readiness
from ebrank.service.ops.check import check_clock
from ebrank.service.settings import LimitsSettings, Settings
from ebrank.service.store import open

GRACE_SECONDS = 5
"""How long requests under way may take, and callers to read responses, when the server closes."""
BACKLOG = 1024
"""Connections that the system queues until they are accepted."""
ACCEPTED_AT_ONCE = 16
"""Connections accepted at once; other requests are served in between."""
FILES = 16_384
"""How many files the process opens at most, unless the system allows it more: each connection takes
one, and the store some."""
LOOK_SECONDS = 1.0
"""How often to see whether the settings file has changed."""

ENDING = signal.SIGINT, signal.SIGTERM
COMPILING = "compiling for this machine, some seconds; later starts find the code in the cache"
"""What the log says at once about a start that has to wait for the compiler, and `/readyz` too."""
SWITCH_SECONDS = 1e-3
"""How long a thread may hold the GIL while the event loop waits for it."""

log = logging.getLogger("ebrank.service")

Announce = Callable[[str, str], None]
"""Takes the address of a server, and which database its store is in."""
Companion = Callable[[str], Awaitable[None]]
"""Runs alongside the server, given its address; cancelled when it closes."""


class SettingsFile(NamedTuple):
    """A file, and what returns the settings in it as they are now, or raises an `EBRankError`."""

    path: Path
    read: Callable[[], Settings]


class ServerError(EBRankError):
    """The server cannot listen where it should."""


def check(settings: Settings) -> None:
    """Raise if settings would open the service to the network without tokens."""
    if not settings.tokens and not is_loopback(settings.server.host):
        raise ServerError(
            f"server.host {settings.server.host} can be reached from elsewhere and there are no "
            "tokens. Make some with `ebrank serve --new-token NAME --scopes rank,feedback` for "
            "programs that serve lists and read the dashboard, and `--scopes admin` for items and "
            "training, "
            "or listen on 127.0.0.1"
        )


def reachable(host: str) -> str:
    """Return an address at which this machine reaches a server that listens on `host`.

    >>> reachable("0.0.0.0"), reachable("::"), reachable("192.0.2.7")
    ('127.0.0.1', '::1', '192.0.2.7')
    """
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; 0 picks a free port.

    It is not shared: a second server on the same port fails, and so does this one if it is the
    second.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = addresses[0]
        opened = socket.socket(family, kind, protocol)  # asyncio sets TCP_NODELAY for TCP only
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after a restart
            opened.bind(address)
            opened.listen(BACKLOG)
        except OSError:
            opened.close()
            raise
        return opened
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise ServerError(
            f"cannot listen on {host} port {port}: {reason}. Choose another with --host or --port"
        ) from None


def run(
    settings: Settings,
    *,
    announce: Announce,
    companion: Companion | None = None,
    file: SettingsFile | None = None,
) -> None:
    """Serve until a signal arrives; the store is opened once the server can listen.

    Args:
        settings: of the service.
        announce: called once the service is ready.
        companion: runs alongside the server.
        file: where the settings are, to read the tokens again.
    """
    check(settings)

    def ready(address: str, database: str) -> None:
        _settle()
        announce(address, database)

    async def served(opened: socket.socket) -> None:
        await serve(settings, opened, _signals(), ready, companion, file)

    _allow_files()
    with (
        logs.written(settings.server.log, requests=settings.server.access_log),
        listening(settings.server.host, settings.server.port) as opened,
        _no_collections(),
    ):
        asyncio.run(served(opened))


async def serve(
    settings: Settings,
    opened: socket.socket,
    stopped: asyncio.Event,
    announce: Announce,
    companion: Companion | None = None,
    file: SettingsFile | None = None,
) -> None:
    """Serve on a listening socket until an event is set."""
    async with open(settings.store.url) as store:
        last, most_idle = await store.log.last_time(), settings.store.max_idle_seconds
        check_clock(time.time(), last, store.touched, most_idle)
        engine = await Engine.open(store, settings)
        app = App(engine, settings)
        server = Server(app, settings.limits)
        serving = asyncio.create_task(server.serve([opened]))
        port = opened.getsockname()[1]
        address = f"http://{_bracketed(reachable(settings.server.host))}:{port}"
        beside: list[asyncio.Future[None]] = []
        try:
            with announced(partial(_say_compiling, app.readiness)):
                await engine.start()
            app.readiness.started = True
            if file is not None:
                tokens = Tokens(app.admission, settings, file)
                beside.append(asyncio.create_task(tokens.follow()))
            announce(address, store.about)
            log.info("the store is in %s", store.about)
            beside.append(asyncio.create_task(engine.warm_up()))
            if companion is not None:
                beside.append(asyncio.ensure_future(companion(address)))
            await stopped.wait()
            app.readiness.leaving = True
            await asyncio.sleep(settings.server.leave_seconds)
        finally:
            for task in beside:
                task.cancel()
            if beside:
                await asyncio.wait(beside)
            server.should_exit = True
            await serving
            await engine.close()


class Server(uvicorn.Server):
    """uvicorn in a loop that is not its own, which handles signals."""

    def __init__(self, app: App, limits: LimitsSettings) -> None:
        options = uvicorn.Config(
            app,
            interface="asgi3",
            http="httptools",
            ws="none",
            lifespan="off",
            proxy_headers=False,  # anybody could send them
            server_header=False,
            access_log=False,
            log_config=None,
            log_level="critical",  # callers that send nonsense are of no interest
            backlog=ACCEPTED_AT_ONCE,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        super().__init__(options)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections; uvicorn's backlog is also how many to accept at once."""
        await super().startup(sockets)
        for opened in sockets or ():
            opened.listen(BACKLOG)


class Tokens:
    """The tokens that a server admits.

    Args:
        admission: of the server.
        settings: with which it started.
        file: where they are.
    """

    def __init__(self, admission: Admission, settings: Settings, file: SettingsFile) -> None:
        self._admission, self._settings, self._file = admission, settings, file
        self._seen: tuple[int, ...] | None = None

    async def follow(self) -> None:
        """Reload whenever the file changes, until cancelled; it may have since it was read."""
        while True:
            if _state(self._file.path) != self._seen:
                self.reload()
            await asyncio.sleep(LOOK_SECONDS)

    def reload(self) -> None:
        """Take over the tokens, and log what changed."""
        self._seen = _state(self._file.path)
        try:
            settings, before = self._file.read(), self._settings
            if before.tokens and not settings.tokens:
                raise SettingsError(
                    f"{self._file.path}: there are no tokens left, and without any, everybody is "
                    "admitted. If you want that, restart the server"
                )
        except EBRankError as problem:
            log.error("the tokens stay as they are: %s", problem, extra=logs.about("reload"))
            return
        self._settings = settings
        if settings.tokens != before.tokens:
            self._admission.use(settings.tokens)
            names = ", ".join(token.name for token in settings.tokens) or "none"
            log.warning("the tokens have changed: %s", names, extra=logs.about("reload"))
        if replace(settings, tokens=before.tokens) != before:
            log.warning(
                "other settings than tokens have changed: they take effect at the next start",
                extra=logs.about("reload"),
            )


def _allow_files() -> None:
    """Let the process open `FILES` files, or as many as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _state(file: Path) -> tuple[int, ...] | None:
    """Return a file's modification time, size and inode, None if there is none."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _say_compiling(readiness: Readiness) -> None:
    log.warning("%s", COMPILING)
    readiness.waits_for = COMPILING


@contextmanager
def _no_collections() -> Iterator[None]:
    """Disable garbage collection until `_settle`: a start creates mostly modules, which stay."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _settle() -> None:
    """Keep the interpreter from delaying the loop.

    The garbage collector stops everything while it visits all objects: for a tenth of a second, if
    permanent ones, modules and compiled code, are among them. And by default a thread that computes
    keeps Python's lock from the loop for 5 ms at a time.
    """
    gc.freeze()
    gc.enable()
    sys.setswitchinterval(SWITCH_SECONDS)


def _signals() -> asyncio.Event:
    """Return an event that a signal sets; a second one ends the process as usual."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for name in ENDING:
            loop.remove_signal_handler(name)
        stopped.set()

    for name in ENDING:
        loop.add_signal_handler(name, stop)
    return stopped


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
