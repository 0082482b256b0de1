"""The server as a process: how it starts, closes, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import ebrank
from ebrank.client import Retries, ServiceError
from ebrank.service.engine import Engine
from ebrank.service.http import app
from ebrank.service.ops import server
from ebrank.service.ops.server import COMPILING, ServerError, check, listening, run
from ebrank.service.settings import ServerSettings, Settings, StoreSettings, Token
from ebrank.service.store.base import StoreError
from ebrank.service.store.sqlite import SqliteStore
from tests.service.store.blocking import Blocking
from tests.serving import Server, serving
from tests.threaded import Threaded

ITEMS = {f"item {place}": [float(place)] for place in range(20)}
ONCE = Retries(attempts=1)
LOCAL = Settings(server=ServerSettings(port=0), store=StoreSettings(url="memory:"))


def test_a_server_that_others_can_reach_needs_tokens() -> None:
    outside = Settings(server=ServerSettings(host="0.0.0.0"))
    with pytest.raises(ServerError, match="no tokens") as told:
        check(outside)
    assert "--new-token NAME --scopes rank,feedback" in str(told.value)
    assert "--scopes admin" in str(told.value)
    check(Settings(server=ServerSettings(host="::1")))
    check(Settings(outside.server, tokens=(Token("a", "0" * 64, ("rank",)),)))


def test_a_port_is_never_shared() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ServerError, match=f"port {port}: address already in use"):
            listening("127.0.0.1", port)
    with listening("127.0.0.1", port) as ours, socket.socket() as other:
        assert ours.getsockname()[1] == port
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(ours.getsockname())


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ServerError, match=r"cannot listen on 192\.0\.2\.1"):
        listening("192.0.2.1", 0)
    with pytest.raises(ServerError, match="cannot listen on no such host"):
        listening("no such host", 0)


def test_trouble_at_the_start_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(self: object) -> None:
        raise StoreError("the store has no model 7")

    monkeypatch.setattr("ebrank.service.engine.Engine.start", failing)
    with pytest.raises(StoreError, match="no model 7"):
        run(LOCAL, announce=lambda address: None)


def test_what_runs_beside_the_server_ends_with_it() -> None:
    heard: list[str] = []

    async def companion(address: str) -> None:
        try:
            heard.append(address)
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            heard.append("gone")

    run(LOCAL, announce=heard.append, companion=companion)
    assert heard == [heard[0], heard[0], "gone"]
    assert heard[0].startswith("http://127.0.0.1:")


@pytest.fixture
def killed() -> Iterator[list[int]]:
    """Return the signals that would have ended the process."""
    ended: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, frame: ended.append(number))
    yield ended
    signal.signal(signal.SIGHUP, before)


async def hang_up_and_stop(address: str) -> None:
    signal.raise_signal(signal.SIGHUP)
    await asyncio.sleep(0.01)
    signal.raise_signal(signal.SIGTERM)


def test_without_a_file_a_hangup_changes_nothing_and_the_log_says_so(
    killed: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    run(LOCAL, announce=lambda address: None, companion=hang_up_and_stop)
    assert killed == []
    hangups = [text for text in caplog.messages if "SIGHUP" in text]
    assert hangups == ["SIGHUP changes nothing: there is no --config file"]


def test_a_server_in_a_terminal_ends_with_it(
    killed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang_up(address: str) -> None:
        signal.raise_signal(signal.SIGHUP)

    keyboard, terminal = os.openpty()
    with os.fdopen(keyboard), os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        run(LOCAL, announce=lambda address: None, companion=hang_up)
    assert killed == []


def test_a_hangup_while_it_starts_does_not_end_it(
    killed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Engine.start

    async def interrupted(self: Engine) -> None:
        signal.raise_signal(signal.SIGHUP)
        await start(self)

    monkeypatch.setattr(Engine, "start", interrupted)
    run(LOCAL, announce=lambda address: None, companion=hang_up_and_stop, read=lambda: LOCAL)
    assert killed == []


HALF = b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


def test_half_a_request_does_not_keep_it_from_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LAST_SECONDS", 0.1)
    monkeypatch.setattr(server, "LEAVE_SECONDS", 0.1)
    with Threaded(tmp_path) as started:
        with ebrank.Client(started.url) as client:
            client.put_items("tea", ITEMS)
            client.rank("tea")
        connection = socket.create_connection(("127.0.0.1", started.port), timeout=5)
        connection.sendall(HALF)  # and the caller stays
        time.sleep(0.1)
    connection.close()
    # Sums of the minutes are saved when the engine closes; another minute may have begun.
    store = Blocking(SqliteStore(tmp_path / "store", "read"))
    assert sum(minute.values.get("rankings", 0) for minute in store.meta.minutes(0.0)) == 1
    store.close()


@pytest.mark.slow
def test_a_start_that_compiles_says_so_before_it_does(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ebrank", "serve", "--port", "0", "--store", "memory:"]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "EBRANK_CACHE": str(tmp_path / "cache")},
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"{COMPILING}\n"
        compiled = list(tmp_path.glob("cache/kernels/*/__pycache__/*.nbc"))
        process.kill()
    assert len(compiled) <= 1


def ask_until_refused(server: Server, counted: list[int]) -> None:
    """Rank and click as fast as possible; note what was acknowledged."""
    with ebrank.Client(server.address, retries=ONCE) as client:
        while True:
            try:
                served = client.rank("tea", k=1)
                counted[0] += client.click(served, served.items[0].id).accepted
            except ServiceError as problem:
                if problem.status not in (None, 503):
                    counted[0] = -1
                return


@pytest.mark.slow
def test_ctrl_c_under_load_loses_nothing_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with serving(folder) as started:
        with urllib.request.urlopen(f"{started.address}/readyz", timeout=5) as answer:
            assert json.load(answer) == {"status": "ready"}
        with ebrank.Client(started.address) as client:
            client.put_items("tea", ITEMS)
        counts = [[0] for _ in range(4)]
        threads = [threading.Thread(target=ask_until_refused, args=(started, c)) for c in counts]
        for thread in threads:
            thread.start()
        while min(counts) < [20] and all(thread.is_alive() for thread in threads):
            time.sleep(0.01)
        assert started.stop(signal.SIGINT) == (0, "")
        for thread in threads:
            thread.join()
    assert all(count > 0 for (count,) in counts)  # -1: it was refused with something else
    acknowledged = sum(count for (count,) in counts)
    with Threaded(tmp_path) as again, ebrank.Client(again.url) as client:
        stored = sum(item.clicks for item in client.query("tea").items)
        # A click may be counted whose answer was on its way when the caller gave up.
        assert acknowledged <= stored <= acknowledged + len(threads)
