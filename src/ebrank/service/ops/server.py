"""One process: the store, the engine and the web server around them.

The server listens before the engine has started, so that `/healthz` answers at once and `/readyz`
says when the rest does. On SIGTERM or Ctrl-C it takes nothing new, finishes what it is doing,
flushes and leaves; callers that never send the rest of a request, or never take its answer, are not
waited for. A second signal ends it at once.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from ebrank.errors import EBRankError
from ebrank.extras import import_extra
from ebrank.service.core.engine import Engine
from ebrank.service.http.admission import is_loopback
from ebrank.service.http.app import App
from ebrank.service.http.metrics import AccessLog
from ebrank.service.settings import Settings
from ebrank.service.store import open

GRACE_SECONDS = 5.0
"""How long requests under way may take when the server closes."""
LEAVE_SECONDS = 2.0
"""How long the web server may then take to let go of its connections."""

Companion = Callable[[str], Awaitable[None]]
"""What runs beside the server while it serves, given its address; cancelled when it closes."""


class ServerError(EBRankError):
    """The server cannot listen where it should."""


def check(settings: Settings) -> None:
    """Refuse settings that would open the service to the network without tokens."""
    if not settings.tokens and not is_loopback(settings.server.host):
        raise ServerError(
            f"server.host {settings.server.host} can be reached from elsewhere and there are no "
            "tokens. Make some with `ebrank serve --new-token NAME --scopes rank,feedback` for "
            "programs that serve lists and `--scopes admin` for items, training and the dashboard, "
            "or listen on 127.0.0.1"
        )


def reachable(host: str) -> str:
    """Return an address by which this machine reaches a server that listens on `host`.

    >>> reachable("0.0.0.0"), reachable("::"), reachable("192.0.2.7")
    ('127.0.0.1', '::1', '192.0.2.7')
    """
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def free_port(host: str, port: int) -> int:
    """Return the port to listen on, which is a free one for 0.

    The web server itself would share a port with another server rather than refuse it.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
            return int(probe.getsockname()[1])
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise ServerError(
            f"cannot listen on {host} port {port}: {reason}. Choose another with --host or --port"
        ) from None


def run(
    settings: Settings,
    *,
    announce: Callable[[str], None],
    companion: Companion | None = None,
) -> None:
    """Serve until a signal says otherwise; the store is opened once the server can listen.

    Args:
        settings: of the service.
        announce: called with the address once the service is ready.
        companion: runs beside the server while it serves.
    """
    check(settings)
    import_extra("granian", extra="service", purpose="to serve")  # before anything is touched
    port = free_port(settings.server.host, settings.server.port)
    asyncio.run(_serve(settings, port, announce, companion))


async def _serve(
    settings: Settings,
    port: int,
    announce: Callable[[str], None],
    companion: Companion | None,
) -> None:
    stopped = _signals()
    async with open(settings.store.url) as store:
        engine = await Engine.open(store, settings)
        log = AccessLog() if settings.server.access_log else None
        app = App(engine, settings, log=log)
        web = _web_server(app, settings.server.host, port)
        address = f"http://{_bracketed(reachable(settings.server.host))}:{port}"
        serving, beside = asyncio.create_task(web.serve()), None
        try:
            await engine.start()
            _settle_memory()
            app.readiness.started = True
            announce(address)
            if companion is not None:
                beside = asyncio.ensure_future(companion(address))
            await _first(stopped, serving)
        finally:
            if beside is not None:
                beside.cancel()
                await asyncio.wait([beside])
            await app.drained(GRACE_SECONDS)
            web.stop()
            # It waits for its callers, of whom one may never take its answer.
            await asyncio.wait([serving], timeout=LEAVE_SECONDS)
            await engine.close()


def _settle_memory() -> None:
    """Keep the garbage collector from looking at what is there for good: modules, compiled code.

    It stops everything while it looks at all objects, which takes a tenth of a second with them.
    """
    gc.collect()
    gc.freeze()


async def _first(stopped: asyncio.Event, serving: asyncio.Task[None]) -> None:
    """Return when a signal came; raise if the web server has ended by itself."""
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait([waiting, serving], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if serving.done():
        raise ServerError(f"the web server ended by itself: {serving.exception()}")


def _signals() -> asyncio.Event:
    """Return an event that a signal sets; a second one ends the process as usual."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    names = (signal.SIGINT, signal.SIGTERM)

    def stop() -> None:
        for name in names:
            loop.remove_signal_handler(name)
        stopped.set()

    for name in names:
        loop.add_signal_handler(name, stop)
    return stopped


def _web_server(app: App, host: str, port: int) -> Any:  # noqa: ANN401 (untyped)
    embed = import_extra("granian.server.embed", extra="service", purpose="to serve")
    constants = import_extra("granian.constants", extra="service", purpose="to serve")
    return embed.Server(
        app,
        address=socket.getaddrinfo(host, port)[0][4][0],
        port=port,
        interface=constants.Interfaces.ASGINL,
        http=constants.HTTPModes.http1,
        websockets=False,
        backlog=1024,
        log_enabled=False,
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
