"""Tokens that change in the file of a server that serves."""

from __future__ import annotations

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
from ebrank.service.ops import configuration
from ebrank.service.ops.server import Tokens, check
from ebrank.service.settings import Settings, Token
from tests.serving import serving

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
    tokens = Tokens(admission, begun, read)
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
        admission.admit(Caller("192.0.2.7", None), {"headers": []}, API[0])
    lines = caplog.messages
    assert len(lines) == 3  # refused as a whole: nothing about other settings
    assert lines[1] == "the tokens have changed: old, new"
    assert lines[0] == lines[2]
    assert lines[0].startswith("the tokens stay as they are: ")
    assert "restart the server" in lines[0]


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
