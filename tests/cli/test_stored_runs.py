"""Folders of `ebrank simulate`: what is in the way of comparing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.simulation.protocol import SETTINGS
from ebrank.simulation.storage import read_trial, write_trial
from tests.cli.comparing import SHORT, ebrank, simulated

UNUSUAL = {
    "eta": "0.5",
    "sessions": "100",
    "updates": "5",
    "warmup": "3",
    "initial": "4-7",
    "list_length": "6",
    "labels": "binary",
    "users": "dcm:setting=navigational",
    "noise": "0.2",
    "cutoff": "3",
    "click_rate": "0.5",
    "examination": "0.5",
    "gamma": "0.9",
    "measure_at": "3,10",
}
"""A value of each option of the protocol that is not the usual one."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("option", SETTINGS)
def test_a_run_with_any_option_can_be_compared(option: str) -> None:
    words = (*SHORT, f"--{option.replace('_', '-')}", UNUSUAL[option])
    simulated("one", "bm25", options=words)
    done = ebrank("compare", "one", "random", *words)
    assert done.exit_code == 0, done.stderr
    assert "differ in" in ebrank("compare", "one", "random", *SHORT).stderr


def test_a_curve_that_rankers_believe_is_read_back() -> None:
    words = (*SHORT, "--examination", "1,0.5,0.25")
    simulated("one", "bm25", options=words)
    simulated("two", "random", options=words)
    assert ebrank("compare", "one", "two").exit_code == 0


def test_another_version_of_the_code_is_refused() -> None:
    simulated("one", "bm25")
    path = Path("one/results.json")
    document = json.loads(path.read_text())
    document["versions"]["source"] = "0123456789abcdef"
    path.write_text(json.dumps(document))
    done = ebrank("compare", "one", "ebrank", *SHORT)
    assert done.exit_code == 2
    assert "they differ in version of the code (0.1.0 01234567, 0.1.0 " in done.stderr


def test_trials_of_something_else_are_refused() -> None:
    simulated("one", "bm25", "random")
    path = Path("one/results.json")
    document = json.loads(path.read_text())
    first, second = document["rankers"]
    first["files"], second["files"] = second["files"], first["files"]
    path.write_text(json.dumps(document))
    done = ebrank("compare", "one")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "trial of another run. Run `ebrank simulate` there again." in done.stderr


def test_trials_of_different_code_are_no_result() -> None:
    simulated("one", "bm25", "random")
    path = next(Path("one").glob("random_trial1_*.npz"))
    trial, identity = read_trial(path)
    write_trial(path, trial, identity | {"engine": "0123456789abcdef"}, np.array(["q"]))
    done = ebrank("compare", "one")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "error: one: different code ran the trials of random. Run `ebrank"
    )


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("other", None, "other: no results.json in this folder. Give a folder that"),
        ("other", "{}", "other/results.json: not the results of a simulation"),
        ("other", '{"kind": "ebrank simulate"}', "other/results.json: the results are damaged"),
    ],
)
def test_folders_that_hold_something_else(name: str, content: str | None, problem: str) -> None:
    Path(name).mkdir()
    if content is not None:
        Path(name, "results.json").write_text(content)
    done = ebrank("compare", name, "bm25", *SHORT)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {problem}")


@pytest.mark.parametrize(
    ("left", "problem"),
    [
        ([2, 1], "2 finished trials of bm25, 1 of others"),
        ([0, 2], "no finished trial of bm25"),
    ],
)
def test_a_run_that_was_stopped_is_to_be_finished(left: list[int], problem: str) -> None:
    simulated("one", "bm25", "random")
    path = Path("one/results.json")
    document = json.loads(path.read_text())
    for ranker, count in zip(document["rankers"], left, strict=True):
        del ranker["files"][count:]
    path.write_text(json.dumps(document))
    done = ebrank("compare", "one")
    assert done.exit_code == 2
    assert done.stderr == f"error: one: {problem}. Run `ebrank simulate` there again.\n"


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"PK")])
def test_a_lost_or_damaged_trial_is_named(damage: Any) -> None:  # noqa: ANN401
    simulated("one", "bm25", "random")
    path = next(Path("one").glob("random_trial1_*.npz"))
    damage(path)
    done = ebrank("compare", "one")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {path}: ")
