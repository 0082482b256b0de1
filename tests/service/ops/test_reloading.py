"""Tokens that change in the file of a server that serves."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from pathlib import Path

import pytest

import ebrank
from ebrank.client import Retries, ServiceError
from ebrank.service.http.admission import Admission, Caller, new_token
from ebrank.service.http.problems import HttpProblem
from ebrank.service.http.routes import API
from ebrank.service.ops import configuration, reloading
from ebrank.service.ops.reloading import Reloading
from ebrank.service.ops.server import check
from ebrank.service.settings import Settings, Token
from tests.serving import serving

OLD, NEW = (new_token(name, ["rank"]) for name in ("old", "new"))


def table(token: Token) -> str:
    return f'[tokens.{token.name}]\nsha256 = "{token.sha256}"\nscopes = ["rank"]\n'


def known(admission: Admission, secret: str) -> bool:
    headers = [(b"authorization", f"Bearer {secret}".encode())]
    return admission.caller({"headers": headers, "client": None}).token is not None


async def follow(file: Path, *texts: str | None) -> tuple[Admission, list[bool]]:
    """Return whether both tokens were known after each text of a file that is followed.

    None removes the file.
    """

    def read() -> Settings:
        settings = configuration.read(file)
        check(settings)
        return settings

    file.write_text(str(texts[0]), encoding="utf-8")
    begun, found = read(), []
    admission, follower = Admission(begun), Reloading(file, read)
    task = asyncio.create_task(follower.follow(admission, begun))
    await asyncio.sleep(0.02)
    for text in texts[1:]:
        if text is None:
            file.unlink()
        else:
            file.write_text(text, encoding="utf-8")
        follower.ask()
        await asyncio.sleep(0.02)
        found += [known(admission, OLD[0]), known(admission, NEW[0])]
    task.cancel()
    return admission, found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "serve.toml"


async def test_tokens_come_and_go(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    old, new = table(OLD[1]), table(NEW[1])
    _, found = await follow(file, old, old + new, new)
    assert found == [True, True, False, True]
    assert [one.getMessage() for one in caplog.records] == [
        "the tokens have changed: old, new",
        "the tokens have changed: new",
    ]


async def test_a_file_that_cannot_be_used_changes_nothing(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = '[server]\nhost = "0.0.0.0"\n'  # without tokens it would be open to everybody
    bad = ("[tokens", outside, None, '[tokens.x]\nsha256 = "private"\n')
    _, found = await follow(file, outside + table(OLD[1]), *bad)
    assert found == [True, False] * 4
    told = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert all(line.startswith("the tokens stay as they are: ") for line in told)
    assert len(told) == 4
    assert "private" not in caplog.text


@pytest.mark.parametrize(
    "left",
    [
        "",  # emptied, or cut off while it was saved
        "[ranking]\nk = 3\n",
        "[tokens]\n",
        '[server]\nhost = "127.0.0.1"\n',
    ],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_the_last_token_stays_until_a_restart(
    file: Path, caplog: pytest.LogCaptureFixture, host: str, left: str
) -> None:
    begun = f'[server]\nhost = "{host}"\n' + table(OLD[1])
    admission, found = await follow(file, begun, left, begun + table(NEW[1]), left)
    assert found == [True, False, True, True, True, True]
    with pytest.raises(HttpProblem, match="needs a valid token"):
        admission.admit(Caller("192.0.2.7", None), {"headers": []}, API[0])
    lines = [one.getMessage() for one in caplog.records]
    assert len(lines) == 3  # refused as a whole: nothing about other settings
    assert lines[1] == "the tokens have changed: old, new"
    assert lines[0] == lines[2]
    assert lines[0].startswith("the tokens stay as they are: ")
    assert "restart the server" in lines[0]


async def test_a_file_that_is_saved_while_it_is_read_never_admits_more(file: Path) -> None:
    """An editor may write a file piece by piece: every beginning of it may be read."""
    whole = '[server]\nhost = "0.0.0.0"\n\n' + table(OLD[1]) + "\n" + table(NEW[1])
    cuts = (whole[:end] for end in range(0, len(whole), 23))
    admission, found = await follow(file, whole, *cuts)
    assert all(found[0::2])
    with pytest.raises(HttpProblem, match="needs a valid token"):
        admission.admit(Caller("192.0.2.7", None), {"headers": []}, API[0])


async def test_other_settings_wait_for_the_next_start(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changed = "[ranking]\nk = 3\nwindow = 5.0\n" + table(OLD[1])
    await follow(file, table(OLD[1]), changed, changed)
    assert [one.getMessage() for one in caplog.records] == [
        "other settings than tokens have changed: they take effect at the next start"
    ]


async def test_a_change_is_noticed_without_a_signal(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "LOOK_SECONDS", 0.005)
    monkeypatch.setattr(Reloading, "ask", lambda self: None)
    _, found = await follow(file, table(OLD[1]), table(NEW[1]))
    assert found == [False, True]


@pytest.mark.slow
def test_a_server_takes_over_tokens_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with serving(folder, config=table(OLD[1])) as server:
        with (
            ebrank.Client(server.address, token=OLD[0]) as old,
            ebrank.Client(server.address, token=NEW[0], retries=Retries(attempts=1)) as new,
        ):
            assert old.models().active == 0
            with pytest.raises(ServiceError, match="valid token"):
                new.models()
            folder.with_name("store.toml").write_text(table(NEW[1]), encoding="utf-8")
            os.kill(server.process.pid, signal.SIGHUP)
            deadline = time.monotonic() + 20.0
            while time.monotonic() < deadline:
                try:
                    assert new.models().active == 0
                    break
                except ServiceError:
                    time.sleep(0.02)
            with pytest.raises(ServiceError, match="valid token"):
                old.models()
        code, errors = server.stop()
        assert (code, errors) == (0, "the tokens have changed: new\n")
