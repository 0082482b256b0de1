"""`--users`, `--click-rate` and `--list-length`, on every command that simulates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ebrank as package
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import simulate
from ebrank.simulation.tuning import tune
from ebrank.simulation.users import parse
from tests.cli.comparing import SHORT, TINY, ebrank, simulated

USERS = "dcm:setting=informational,cutoff=7"
OTHERS = ("--users", USERS, "--click-rate", "0.5", "--list-length", "7")
CONFIG = SimulationConfig(sessions=80, updates=4, users=parse(USERS), click_rate=0.5, list_length=7)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_simulate_and_compare() -> None:
    data = package.load("mq2007-like", scale=0.01)
    expected = simulate(data, registry.parse("bm25"), CONFIG, seed=1, trials=2)
    done = ebrank("simulate", "--ranker", "bm25", *SHORT, *OTHERS, "--json")
    assert json.loads(done.stdout)["rankers"][0]["cum_ndcg"]["trials"] == expected.cum_ndcg.tolist()
    done = ebrank("simulate", "--ranker", "bm25", *SHORT, *OTHERS)
    assert f"seed 1, users {USERS}, click rates × 0.5, lists of 7" in done.stdout
    done = ebrank("compare", "bm25", "random", *SHORT, *OTHERS, "--json")
    assert done.exit_code == 0, done.output
    assert expected.cum_ndcg.mean() in json.loads(done.stdout)["rankers"][0]["cum_ndcg"].values()


def test_stored_runs_remember_their_users() -> None:
    simulated("one", "bm25", options=(*SHORT, *OTHERS))
    done = ebrank("compare", "one", "random", *SHORT, *OTHERS)
    assert done.exit_code == 0, done.output
    done = ebrank("compare", "one", "random", *SHORT)
    assert done.exit_code == 2
    assert "did not meet the same users: they differ in" in done.stderr
    assert f"users ({USERS}, pbm)" in done.stderr
    assert "click_rate (0.5, 1.0)" in done.stderr


def test_users_that_are_gone_are_told_of() -> None:
    simulated("one", "bm25")
    path = Path("one/results.json")
    path.write_text(path.read_text().replace('"users": "pbm"', '"users": "bots"'))
    done = ebrank("compare", "one")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "has users that this command does not know: no users are called 'bots'" in done.stderr


def test_tune() -> None:
    grid = ("--param", "epsilon", "--grid", "0,5")
    done = ebrank("tune", "--ranker", "ebrank", *grid, *SHORT, *OTHERS, "--json")
    data = package.load("mq2007-like", scale=0.01)
    values = {"epsilon": (0.0, 5.0)}
    expected = tune(data, registry.parse("ebrank"), values, CONFIG, seed=1, trials=2)
    measured = [point["validation_ndcg"]["trials"] for point in json.loads(done.stdout)["grid"]]
    assert measured == [point.validation_ndcg.tolist() for point in expected.points]


def test_reproduce() -> None:
    rest = ("--trials", "1", "--sessions", "120", "--only", "table1", "--out", "here")
    done = ebrank("reproduce", *TINY, *rest, *OTHERS)
    assert done.exit_code == 0, done.output
    document = json.loads(Path("here/results.json").read_text())
    assert document["config"]["users"] == USERS
    assert document["config"]["list_length"] == 7
    assert document["config"]["click_rate"] == 0.5
    assert f"--list-length 7 --users {USERS} --click-rate 0.5" in document["command"]


@pytest.mark.parametrize("command", ["simulate", "compare", "tune", "reproduce"])
def test_users_nobody_knows_are_refused(command: str) -> None:
    arguments = {"compare": ("bm25", "random"), "reproduce": ("--only", "table1")}
    words = arguments.get(command, ("--ranker", "ebrank"))
    done = ebrank(command, *words, *TINY, "--users", "cascad")
    assert done.exit_code == 2
    assert "no users are called 'cascad'; did you mean cascade?" in done.stderr
