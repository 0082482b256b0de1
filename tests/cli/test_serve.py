"""`ebrank serve` as a user meets it: what it prints, what it refuses, in one line."""

from __future__ import annotations

import dataclasses
import json
import socket
import sys
import tomllib
from pathlib import Path

import pytest

from ebrank import Client
from ebrank.client import ServiceError
from ebrank.service.http.admission import Admission
from ebrank.service.ops.configuration import read
from tests.cli.commands import good, refused
from tests.serving import serving

pytestmark = pytest.mark.slow


def test_check_prints_settings_that_can_be_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ebrank.toml"
    file.write_text(
        "[ranking]\nk = 7\nwindow = 2.5\n[server]\nport = 1\n"
        f'[tokens.shop]\nsha256 = "{"a" * 64}"\nscopes = ["rank"]\n'
    )
    monkeypatch.setenv("EBRANK_SERVE_RANKING_K", "8")
    done = good("serve", "--config", file, "--port", "3", "--check")
    assert done.stderr == ""
    told = tomllib.loads(done.stdout)
    assert told["ranking"]["k"] == 8  # the environment over the file
    assert told["ranking"]["window"] == 2.5
    assert told["server"]["port"] == 3  # the flag over both
    assert "shop" in done.stdout
    assert "a" * 64 not in done.stdout
    again = tmp_path / "again.toml"
    again.write_text(done.stdout)
    same = read(file, environment={"EBRANK_SERVE_RANKING_K": "8"}, flags={"server": {"port": 3}})
    assert read(again) == dataclasses.replace(same, tokens=())
    assert 'cutoff = "off"' in done.stdout


def test_a_new_token_works_as_printed(tmp_path: Path) -> None:
    done = good("serve", "--new-token", "shop", "--scopes", "rank, admin")
    lines = [line.strip() for line in done.stdout.splitlines()]
    secret = next(line for line in lines if line.startswith("ebrank_"))
    file = tmp_path / "ebrank.toml"
    file.write_text("\n".join(lines[lines.index('[tokens."shop"]') :]))
    token = Admission(read(file)).token(f"Bearer {secret}")
    assert token is not None
    assert (token.name, token.scopes) == ("shop", ("rank", "admin"))
    assert secret not in file.read_text()


def test_a_port_in_use_is_one_line_and_leaves_no_store(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refused("serve", "--port", str(port), "--store", tmp_path / "store")
    assert f"port {port}: address already in use" in line
    assert not (tmp_path / "store").exists()


def test_on_all_addresses_it_names_one_that_can_be_opened(tmp_path: Path) -> None:
    config = f'[tokens.a]\nsha256 = "{"a" * 64}"\nscopes = ["rank"]\n'
    with serving(tmp_path / "store", "--host", "0.0.0.0", config=config) as server:
        assert server.printed(r"serves at http://([\d.]+):")[1] == "127.0.0.1"


def test_it_says_where_everything_is_shares_its_store_with_no_other_and_logs_as_json(
    tmp_path: Path,
) -> None:
    config = "[server]\naccess_log = true\n"
    with serving(tmp_path / "store", config=config) as server, Client(server.address) as client:
        server.printed(rf"dashboard +{server.address}/\n +documentation +{server.address}/docs\n")
        assert (tmp_path / "store" / "log.db").exists()
        line = refused("serve", "--port", "0", "--store", tmp_path / "store")
        assert str(server.process.pid) in line
        with pytest.raises(ServiceError):
            client.query("private")
        code, errors = server.stop()
    assert code == 0
    (entry,) = map(json.loads, errors.splitlines())
    assert (entry["route"], entry["status"]) == ("/v1/queries/{query}", 404)
    assert "private" not in errors


@pytest.mark.parametrize("absent", ["cachetools", "uvicorn"])
def test_a_missing_extra_says_how_to_install_it(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    said = refused("serve", "--port", "0", "--store", "store")
    assert said.startswith(f"error: {absent} is needed to serve")
    assert "pip install 'ebrank[service]'" in said
    assert not Path("store").exists()
