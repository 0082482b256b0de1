"""The server as a process: how it starts, closes, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

import ebrank
from ebrank.client import Retries, ServiceError
from ebrank.service.endpoints import RANK
from ebrank.service.http.admission import Admission, Caller, new_token
from ebrank.service.http.problems import HttpProblem
from ebrank.service.ops import configuration, server
from ebrank.service.ops.check import DAY, check_clock
from ebrank.service.ops.server import (
    COMPILING,
    ServerError,
    SettingsFile,
    Tokens,
    check,
    listening,
    run,
)
from ebrank.service.settings import ServerSettings, Settings, StoreSettings, Token
from ebrank.service.store import open
from ebrank.service.store.base import StoreError
from ebrank.service.store.sqlite import SqliteStore
from tests.cli.commands import refused
from tests.service.histories import new_items
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
        run(LOCAL, announce=lambda *ready: None)


def test_what_runs_beside_the_server_ends_with_it() -> None:
    heard: list[str] = []

    async def companion(address: str) -> None:
        try:
            heard.append(address)
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            heard.append("gone")

    run(LOCAL, announce=lambda address, _: heard.append(address), companion=companion)
    assert heard == [heard[0], heard[0], "gone"]
    assert heard[0].startswith("http://127.0.0.1:")


async def stop(address: str) -> None:
    signal.raise_signal(signal.SIGTERM)


HALF = b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


def test_half_a_request_does_not_keep_it_from_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", 1)
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


@pytest.mark.parametrize(
    ("limits", "chosen"),
    [
        ((1024, 20_000), (server.FILES, 20_000)),
        ((1024, 4096), (4096, 4096)),
        ((1024, resource.RLIM_INFINITY), (server.FILES, resource.RLIM_INFINITY)),
        ((65_536, 65_536), None),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
    ],
)
def test_many_connections_may_be_open_if_the_system_allows_it(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], chosen: tuple[int, int] | None
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda kind, wanted: asked.append(wanted))
    run(LOCAL, announce=lambda *ready: None, companion=stop)
    assert asked == ([] if chosen is None else [chosen])


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
            assert json.load(answer)["status"] == "ready"
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


# --- tokens that change in the file of a server that serves --------------------------------------


OLD, NEW = (new_token(name, ["rank"]) for name in ("old", "new"))


def table(token: Token) -> str:
    return f'[tokens.{token.name}]\nsha256 = "{token.sha256}"\nscopes = ["rank"]\n'


def reloaded(file: Path, *texts: str | None) -> tuple[Admission, list[bool]]:
    """Return whether both tokens were known after each text of a file that is read again.

    None removes the file.
    """

    def read() -> Settings:
        settings = configuration.read(file)
        check(settings)
        return settings

    file.write_text(str(texts[0]), encoding="utf-8")
    begun, found = read(), []
    admission = Admission(begun)
    tokens = Tokens(admission, begun, SettingsFile(file, read))
    for text in texts[1:]:
        if text is None:
            file.unlink()
        else:
            file.write_text(text, encoding="utf-8")
        tokens.reload()
        found += [admission.token(f"Bearer {secret}") is not None for secret, _ in (OLD, NEW)]
    return admission, found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "serve.toml"


def test_tokens_come_and_go(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    old, new = table(OLD[1]), table(NEW[1])
    _, found = reloaded(file, old, old + new, new)
    assert found == [True, True, False, True]
    assert caplog.messages == [
        "the tokens have changed: old, new",
        "the tokens have changed: new",
    ]


def test_a_file_that_cannot_be_used_changes_nothing(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = '[server]\nhost = "0.0.0.0"\n'  # without tokens it would be open to everybody
    bad = ("[tokens", outside, None, '[tokens.x]\nsha256 = "private"\n')
    _, found = reloaded(file, outside + table(OLD[1]), *bad)
    assert found == [True, False] * 4
    told = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert all(line.startswith("the tokens stay as they are: ") for line in told)
    assert len(told) == 4
    assert "private" not in caplog.text


@pytest.mark.parametrize(
    "left", ["", "[ranking]\nk = 3\n", "[tokens]\n", '[server]\nhost = "127.0.0.1"\n']
)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_last_token_stays_until_a_restart(
    file: Path, caplog: pytest.LogCaptureFixture, host: str, left: str
) -> None:
    begun = f'[server]\nhost = "{host}"\n' + table(OLD[1])
    admission, found = reloaded(file, begun, left, begun + table(NEW[1]), left)
    assert found == [True, False, True, True, True, True]
    with pytest.raises(HttpProblem, match="needs a valid token"):
        admission.admit(Caller("192.0.2.7", None), {"headers": []}, RANK)
    lines = caplog.messages
    assert len(lines) == 3  # refused as a whole: nothing about other settings
    assert lines[1] == "the tokens have changed: old, new"
    assert lines[0] == lines[2]
    assert lines[0].startswith("the tokens stay as they are: ")
    assert "restart the server" in lines[0]


def test_a_file_that_is_saved_while_it_is_read_never_admits_more(file: Path) -> None:
    """An editor may write a file piece by piece: every beginning of it may be read."""
    whole = '[server]\nhost = "0.0.0.0"\n\n' + table(OLD[1]) + "\n" + table(NEW[1])
    cuts = (whole[:end] for end in range(0, len(whole), 23))
    admission, found = reloaded(file, whole, *cuts)
    assert all(found[0::2])
    with pytest.raises(HttpProblem, match="needs a valid token"):
        admission.admit(Caller("192.0.2.7", None), {"headers": []}, RANK)


def test_other_settings_wait_for_the_next_start(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changed = "[ranking]\nk = 3\nwindow = 5.0\n" + table(OLD[1])
    reloaded(file, table(OLD[1]), changed, changed)
    assert caplog.messages == [
        "other settings than tokens have changed: they take effect at the next start"
    ]


@pytest.mark.slow
def test_a_server_takes_over_tokens_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with serving(folder, config=table(OLD[1])) as server:
        with (
            ebrank.Client(server.address, token=OLD[0], retries=ONCE) as old,
            ebrank.Client(server.address, token=NEW[0], retries=ONCE) as new,
        ):
            assert old.models().active == 0
            with pytest.raises(ServiceError, match="valid token"):
                new.models()
            folder.with_name("store.toml").write_text(table(NEW[1]), encoding="utf-8")
            deadline = time.monotonic() + 20.0
            while time.monotonic() < deadline:
                with suppress(ServiceError):
                    new.models()
                    break
                time.sleep(0.02)
            with pytest.raises(ServiceError, match="valid token"):
                old.models()
        assert server.stop() == (0, "the tokens have changed: new\n")


# --- a clock that cannot be right stops a server before it dates anything ------------------------


NOW = 1_800_000_000.0
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("last", "touched", "most_idle"),
    [
        (0.0, None, DAY),  # a new store
        (0.0, NOW - 9 * YEAR, DAY),  # nothing is dated yet
        (NOW, None, DAY),
        (NOW + DAY / 2, None, DAY),  # times stand still for a while
        (NOW - 9 * YEAR, NOW - DAY, 2 * DAY),  # idle, but something was saved yesterday
        (NOW - 9 * YEAR, None, 0.0),  # switched off
    ],
)
def test_a_clock_that_can_be_right_is_taken(
    last: float, touched: float | None, most_idle: float
) -> None:
    check_clock(NOW, last, touched, most_idle)


def written(folder: Path, moment: float) -> None:
    """Make a store whose log and files are of a moment."""

    async def session() -> None:
        async with open(str(folder)) as store:
            await store.items.put("q", new_items("a"), moment)

    asyncio.run(session())
    for file in folder.iterdir():
        os.utime(file, (moment, moment))


@pytest.mark.parametrize(
    ("years", "told", "remedy"),
    [
        (-2, "730 days after", "MAX_IDLE_SECONDS=0"),
        (2, "730 days before", "restore a backup"),
    ],
)
def test_a_server_does_not_start_with_such_a_clock(
    tmp_path: Path, years: int, told: str, remedy: str
) -> None:
    written(tmp_path / "store", time.time() + years * YEAR)
    for _ in range(2):  # what is refused is refused again, if a supervisor starts it again
        said = refused("serve", "--store", tmp_path / "store", "--port", "0")
        assert f"{told} the log's last entry" in said
        assert remedy in said
