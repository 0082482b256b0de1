"""docs/extending.md works: each block is written to its file and run, in the lab and over HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ebrank.client import Client
from ebrank.service.api import RankResponse
from tests.serving import serving
from tests.threaded import Threaded

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
POLICIES = [
    "ebrank:bonus=optimism:Optimism,width=2",
    "ebrank:learner=stumps:Stumps,rounds=5",
    "ebrank:family=steady:Steady,strength=4,estimator=exposure",
]
SCRIPTS = ["check_policies.py", "run_buyers.py", "check_skimming.py"]
SMALL = ("--dataset", "mq2007-like", "--scale", "0.01", "--trials", "1", "--sessions", "200")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of the page, in a folder of their own."""
    path = tmp_path_factory.mktemp("extending")
    for name, text in re.findall(r"```\w+\n# file: (\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        (path / name).write_text(text)
    return path


def run(folder: Path, *command: str) -> str:
    """Run Python in the folder; return what it prints."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_parts_and_users_of_ones_own_run_in_the_lab(folder: Path, tmp_path: Path) -> None:
    rankers = [word for policy in POLICIES for word in ("--ranker", policy)]
    users = "skimming:Skimming:haste=0.5"
    order = (*SMALL, *rankers, "--users", users, "--out", str(tmp_path))
    printed = run(folder, "-m", "ebrank", "simulate", *order)
    assert f"{users} users" in printed
    results = json.loads((tmp_path / "results.json").read_text())
    assert len(results["rankers"]) == len(POLICIES)


def test_every_script_runs_and_every_part_conforms(folder: Path) -> None:
    """All in one process, which starts once."""
    printed = run(folder, "-c", f"import runpy\nfor name in {SCRIPTS}: runpy.run_path(name)")
    for words in (
        "all policies conform",
        "Cum-NDCG",
        "the users keep the rules",
    ):
        assert words in printed


def settings_for(policy: str) -> str:
    return f'[ranking]\npolicy = "{policy}"\n[training]\nmin_rows = 5\n'


def check_ranking_and_learning(client: Client) -> None:
    client.put_items("tea", {f"i{n}": [n / 20, float(n % 3)] for n in range(20)})
    answer = client.rank("tea", k=5, explain=True)
    assert len(answer.items) == 5
    clicked = [item.id for item in answer.items[:2]]
    events = [
        {"event_id": name, "ranking_id": answer.ranking_id, "item": name, "type": "click"}
        for name in clicked
    ]
    assert client.feedback(events).accepted == 2
    again = {item.id: item for item in client.rank("tea", k=20, explain=True).items}
    assert [again[name].clicks for name in clicked] == [1, 1]


def test_a_server_finds_a_part_on_the_path(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{os.environ.get('PYTHONPATH', '')}")
    config = settings_for(POLICIES[0])
    with serving(tmp_path / "store", config=config) as server, Client(server.address) as client:
        check_ranking_and_learning(client)
        code, errors = server.stop()
    assert (code, "Traceback" in errors) == (0, False), errors


@pytest.mark.parametrize("policy", POLICIES[1:])
def test_parts_rank_and_learn_over_http(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    monkeypatch.syspath_prepend(folder)
    with Threaded(tmp_path, settings_for(policy)) as server, Client(server.url) as client:
        check_ranking_and_learning(client)


def test_a_behavior_with_a_weight_counts_over_http(folder: Path, tmp_path: Path) -> None:
    settings = (folder / "shop.toml").read_text() + '[ranking]\npolicy = "ebrank"\n'
    with Threaded(tmp_path, settings) as server, Client(server.url) as client:
        client.put_items("tea", {"green": [1.0]})
        answer = client.rank("tea", explain=True)
        relevance = [relevance_of(answer)]
        for number, kind in enumerate(("click", "purchase")):
            event = {"event_id": str(number), "ranking_id": answer.ranking_id, "item": "green"}
            assert client.feedback([event | {"type": kind}]).accepted == 1
            relevance.append(relevance_of(client.rank("tea", explain=True)))
        assert relevance[0] < relevance[1] < relevance[2]


def relevance_of(answer: RankResponse) -> float:
    relevance = answer.items[0].relevance
    assert isinstance(relevance, float)
    return relevance
