"""`ebrank tune`: the grid as a table or JSON, the choice marked, never on test queries."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path

import pytest

import ebrank as package
from ebrank.lab.rankers import registry
from ebrank.lab.simulation import parallel
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.tuning import search, tuning_seed
from ebrank.lab.simulation.users import parse
from tests.cli.commands import TINY, answered, ebrank, good, trials, write_fold

TUNE = ("tune", "--ranker", "ebrank:estimator=exposure")
SHORT = (*TUNE, *TINY, "--sessions", "120", "--updates", "4", "--trials", "2")


def test_json_has_the_grid_and_the_librarys_choice(tmp_path: Path) -> None:
    grid = ("--param", "epsilon", "--grid", "0,5,20", "--seed", "3", "--users", "dcm")
    document = answered(*SHORT, *grid, "--out", tmp_path)
    run = partial(
        parallel.run,
        package.load("mq2007-like", scale=0.01),
        config=SimulationConfig(sessions=120, updates=4, users=parse("dcm")),
        seed=tuning_seed(3),
        trials=2,
    )
    ranker = registry.parse("ebrank:estimator=exposure")
    expected = search(ranker, {"epsilon": (0.0, 5.0, 20.0)}, run, seed=3, wider=0)
    tuned = document["tuning"]
    assert [point["values"] for point in tuned["points"]] == [
        {"epsilon": value} for value in (0.0, 5.0, 20.0)
    ]
    for point, wanted in zip(tuned["points"], expected.points, strict=True):
        assert point["validation_ndcg"] == list(wanted.validation_ndcg)
        assert point["ranker"] == wanted.ranker
    assert tuned["best"]["ranker"] == expected.best.ranker
    assert (document["seed"], tuned["seed"]) == (3, -5)
    assert json.loads((tmp_path / "tuning.json").read_text()) == document
    kept = trials(tmp_path)
    assert len(kept) == 6
    assert answered(*SHORT, *grid, "--out", tmp_path) == document
    assert trials(tmp_path) == kept, "nothing was run again"


def test_the_table_marks_the_best_and_says_how_to_use_it() -> None:
    grids = ("--param", "epsilon", "--grid", "0,5", "--param", "beta", "--grid", "1,5")
    lines = good(*SHORT, *grids).stdout.splitlines()
    assert lines[0].endswith("seed 0 (tuning seed -2)")
    assert [lines[1].split(), lines[2].split()] == [["validation"], ["value", "NDCG"]]
    tried = [line.split()[0] for line in lines if line.strip()[:1].isdigit()]
    assert tried == ["0", "5", "1", "5"], "of each, with the other at its best"
    assert "‡" in "".join(lines), "β has only ends"
    command_line, _, chosen = lines[-1].rpartition(" --ranker ")
    assert command_line == (
        "Use it: ebrank simulate --dataset mq2007-like --sessions 120 --updates 4 --scale 0.01"
    )
    ranker = registry.parse(chosen)
    assert ranker.value("epsilon") in (0.0, 5.0)
    assert ranker.value("estimator") == "exposure"


def test_what_it_says_to_use_can_be_run(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "my data", queries=4, items=12, features=3)
    (tmp_path / "experiment.toml").write_text('initial = "4-6"\n')
    data = ("--dataset", folder, "--baseline-feature", "1", "--drop-features", "3")
    file = ("--config", tmp_path / "experiment.toml")
    grid = ("--param", "epsilon", "--grid", "1", "--trials", "1")
    said = good(*TUNE, *data, *file, *grid).stdout.splitlines()[-1]
    assert f"--dataset '{folder}'" in said
    assert "--initial 4-6" in said, "what a file says is repeated"
    good(*shlex.split(said.removeprefix("Use it: ebrank ")), "--trials", "1")


def test_the_declared_grid_is_the_default() -> None:
    points = answered(*SHORT, "--trials", "1")["tuning"]["points"]
    tried = [point["values"]["epsilon"] for point in points]
    assert tried[:8] == [0, 5, 10, 20, 30, 50, 70, 100], "and more where its end is best"


def test_ctrl_c_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "compile_for", stop)
    done = ebrank(*SHORT, "--param", "epsilon", "--grid", "0,5", "--out", tmp_path)
    assert done.exit_code == 130
    assert f"stopped: 0 of 4 trials finished, kept in {tmp_path}" in done.stderr
