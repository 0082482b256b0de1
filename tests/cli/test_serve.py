"""`ebrank serve` as a user meets it: what it prints, what it refuses, in one line."""

from __future__ import annotations

import dataclasses
import json
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root
from ebrank.service.http.admission import Guard
from ebrank.service.ops.configuration import read
from tests.serving import serving

pytestmark = pytest.mark.slow


def run(*arguments: str, **variables: str) -> Result:
    """Run `ebrank serve` in this process, where it should end by itself."""
    words = ["serve", *arguments]
    return CliRunner().invoke(root, words, prog_name="ebrank", env=variables)


def refused(done: Result) -> str:
    """Return the one line of an error."""
    assert (done.exit_code, done.stdout) == (2, "")
    return error_line(done.stderr)


def error_line(stderr: str) -> str:
    assert stderr.startswith("error: ")
    assert stderr.count("\n") == 1
    return stderr


def test_the_process_ends_with_the_error_alone() -> None:
    words = [sys.executable, "-m", "ebrank", "serve", "--config", "/no/such.toml"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "/no/such.toml" in error_line(done.stderr)


def test_check_prints_settings_that_can_be_read_back(tmp_path: Path) -> None:
    file = tmp_path / "ebrank.toml"
    file.write_text(
        "[ranking]\nk = 7\nwindow = 2.5\n[server]\nport = 1\n"
        f'[tokens.shop]\nsha256 = "{"a" * 64}"\nscopes = ["rank"]\n'
    )
    done = run("--config", str(file), "--port", "3", "--check", EBRANK_SERVE_RANKING_K="8")
    assert (done.exit_code, done.stderr) == (0, "")
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
    done = run("--new-token", "shop", "--scopes", "rank, admin")
    assert (done.exit_code, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    secret = next(line for line in lines if line.startswith("ebrank_"))
    file = tmp_path / "ebrank.toml"
    file.write_text("\n".join(lines[lines.index('[tokens."shop"]') :]))
    caller = Guard(read(file).tokens).caller(f"Bearer {secret}")
    assert caller is not None
    assert (caller.name, caller.scopes) == ("shop", ("rank", "admin"))
    assert secret not in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--port", "70000"), "server.port"),
        (("--host", "0.0.0.0"), "no tokens"),
        (("--new-token", "a b"), "is not a valid token name"),
        (("--new-token", "a", "--scopes", "root"), "unknown scope 'root'"),
        (("--store", "/proc/nowhere"), "/proc/nowhere"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], told: str) -> None:
    assert told in refused(run(*arguments))


def test_a_misspelt_setting_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "ebrank.toml"
    file.write_text("[ranking]\nwindw = 1\n")
    line = refused(run("--config", str(file)))
    assert str(file) in line
    assert "Did you mean window?" in line


def test_a_port_in_use_is_one_line_and_leaves_no_store(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refused(run("--port", str(port), "--store", str(tmp_path / "store")))
    assert f"port {port}: address already in use" in line
    assert not (tmp_path / "store").exists()


def test_a_demo_keeps_nothing_where_somebody_wants_it(tmp_path: Path) -> None:
    done = run("--demo", "--store", str(tmp_path / "store"))
    assert done.exit_code == 2
    assert "--demo uses a temporary store" in done.stderr
    assert not (tmp_path / "store").exists()


def test_on_all_addresses_it_names_one_that_can_be_opened(tmp_path: Path) -> None:
    config = f'[tokens.a]\nsha256 = "{"a" * 64}"\nscopes = ["rank"]\n'
    with serving(tmp_path / "store", "--host", "0.0.0.0", config=config) as server:
        assert server.address.startswith("http://127.0.0.1:")


def test_scopes_without_a_token_are_a_usage_error() -> None:
    done = run("--scopes", "rank")
    assert done.exit_code == 2
    assert "--scopes works only with --new-token" in done.stderr


def test_it_says_where_everything_is_and_shares_its_store_with_no_other(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as server:
        assert server.process.stdout is not None
        lines = [server.process.stdout.readline() for _ in range(3)]
        assert lines[0].split() == ["dashboard", f"{server.address}/"]
        assert lines[1].split() == ["documentation", f"{server.address}/docs"]
        assert (tmp_path / "store" / "log.db").exists()
        line = refused(run("--port", "0", "--store", str(tmp_path / "store")))
        assert str(server.process.pid) in line


def test_the_access_log_is_json_on_stderr(tmp_path: Path) -> None:
    config = "[server]\naccess_log = true\n"
    with serving(tmp_path / "store", config=config) as server:
        subprocess.run(
            ["curl", "-s", f"{server.address}/v1/queries/private"],
            check=True,
            timeout=20,
            capture_output=True,
        )
        code, errors = server.stop()
    assert code == 0
    (line,) = map(json.loads, errors.splitlines())
    assert (line["route"], line["status"]) == ("/v1/queries/{query}", 404)
    assert "private" not in errors


def test_help_needs_nothing_heavy() -> None:
    code = (
        "import sys; from ebrank.cli import root\n"
        "root.main(['serve', '--help'], standalone_mode=False)\n"
        "print([m for m in ('msgspec', 'httptools', 'numpy', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("absent", ["cachetools", "uvicorn"])
def test_a_missing_extra_says_how_to_install_it(tmp_path: Path, absent: str) -> None:
    store = tmp_path / "store"
    code = (
        f"import sys; sys.modules[{absent!r}] = None\n"
        f"sys.argv = ['ebrank', 'serve', '--port', '0', '--store', {str(store)!r}]\n"
        "from ebrank.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{absent} is needed to serve" in error_line(done.stderr)
    assert "pip install 'ebrank[service]'" in done.stderr
    assert not store.exists()
