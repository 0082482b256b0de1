"""`ebrank tune`: the grid as a table or JSON, the choice marked, never on test queries."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ebrank
from ebrank.cli import root
from ebrank.parameters import typed as typed_value
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.tuning import tune

PATIENCE = 120  # seconds, should everything have to be compiled first
DATA = ("--dataset", "mq2007-like", "--scale", "0.01")
SHORT = (*DATA, "--sessions", "120", "--updates", "4", "--trials", "2")
EXPOSURE = ("--ranker", "ebrank:estimator=exposure")


pytestmark = pytest.mark.usefixtures("narrow")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, ["tune", *map(str, arguments)], prog_name="ebrank")


def test_json_has_the_grid_and_the_librarys_choice(tmp_path: Path) -> None:
    arguments = (*SHORT, *EXPOSURE, "--param", "epsilon", "--grid", "0,5,20", "--seed", "3")
    done = run(*arguments, "--json", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    expected = tune(
        ebrank.load("mq2007-like", scale=0.01),
        registry.parse("ebrank:estimator=exposure"),
        {"epsilon": (0.0, 5.0, 20.0)},
        SimulationConfig(sessions=120, updates=4),
        seed=3,
        trials=2,
    )
    assert [point["values"] for point in document["grid"]] == [
        {"epsilon": value} for value in (0.0, 5.0, 20.0)
    ]
    for point, wanted in zip(document["grid"], expected.points, strict=True):
        assert point["validation_ndcg"]["trials"] == wanted.validation_ndcg.tolist()
        assert point["validation_ndcg"]["mean"] == wanted.validation_ndcg.mean()
        assert point["validation_ndcg"]["sd"] == pytest.approx(wanted.validation_ndcg.std(ddof=1))
        assert point["ranker"] == wanted.text
    assert document["best"] == {"ranker": expected.best.text, "values": expected.best.values}
    assert (document["seed"], document["tuning_seed"]) == (3, -5)
    kept = json.loads((tmp_path / "tuning.json").read_text())
    assert kept | {"seconds": document["seconds"]} == document
    assert "seconds" not in kept
    assert len(list(tmp_path.glob("*.npz"))) == 6
    again = run(*arguments, "--json", "--out", tmp_path)
    assert json.loads(again.stdout) == document  # its seconds too: nothing was run again


def test_the_table_marks_the_best_and_says_how_to_use_it() -> None:
    grids = ("--param", "epsilon", "--grid", "0,5", "--param", "clamp", "--grid", "true,false")
    done = run(*SHORT, *EXPOSURE, *grids)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].endswith("seed 0 (tuning seed -2)")
    assert lines[1].split() == ["epsilon", "clamp", "validation", "NDCG"]
    rows = [line.split() for line in lines[3:7]]
    assert [row[:2] for row in rows] == [[e, c] for e in "05" for c in ("true", "false")]
    marked = [row for row in rows if row[3:4] == ["*"]]
    assert len(marked) == 1
    assert marked[0][2] == max(row[2] for row in rows)
    command_line, _, chosen = lines[-1].rpartition(" --ranker ")
    assert command_line == (
        "Use it: ebrank simulate --dataset mq2007-like --sessions 120 --updates 4 --scale 0.01"
    )
    ranker = registry.parse(chosen)
    typed = [typed_value(ranker.value(name)) for name in ("epsilon", "clamp")]
    assert typed == marked[0][:2]
    assert ranker.value("estimator") == "exposure"


def test_what_it_says_to_use_can_be_run(tmp_path: Path) -> None:
    folder = tmp_path / "my data"
    folder.mkdir()
    for split in ("train", "vali", "test"):
        rows = (
            f"{item % 3} qid:{split}{query} 1:{item + query} 2:{item % 4} 3:{item % 3}\n"
            for query in range(4)
            for item in range(12)
        )
        (folder / f"{split}.txt").write_text("".join(rows))
    data = ("--dataset", folder, "--baseline-feature", "1", "--drop-features", "3")
    done = run(*data, *EXPOSURE, "--param", "epsilon", "--grid", "1", "--trials", "1")
    said = done.stdout.splitlines()[-1].removeprefix("Use it: ebrank ")
    assert f"--dataset '{folder}'" in said
    used = CliRunner().invoke(root, [*shlex.split(said), "--trials", "1"], prog_name="ebrank")
    assert used.exit_code == 0, used.output


def test_the_declared_grid_is_the_default() -> None:
    document = json.loads(run(*SHORT, *EXPOSURE, "--trials", "1", "--json").stdout)
    tried = [point["values"]["epsilon"] for point in document["grid"]]
    assert tried == [0, 5, 10, 20, 30, 50, 70, 100]
    assert document["grid"][0]["validation_ndcg"]["sd"] is None


def test_a_choice_at_the_edge_is_warned_of() -> None:
    done = run(*SHORT, *EXPOSURE, "--param", "epsilon", "--grid", "3,4")
    assert "warning: the best epsilon is at the edge of its grid" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((*SHORT, "--ranker", "bm25"), "bm25 has nothing to tune"),
        ((*SHORT, *EXPOSURE, "--param", "beta"), "beta has no default grid"),
        ((*SHORT, *EXPOSURE, "--param", "eps", "--grid", "1"), "no parameter 'eps'"),
        ((*SHORT, *EXPOSURE, "--param", "epsilon", "--grid", "1,x"), "epsilon takes a number"),
        ((*SHORT, *EXPOSURE, "--grid", "1"), "one --grid per --param"),
        ((*DATA, *EXPOSURE, "--sessions", "2", "--updates", "1", "--json"), "set more sessions"),
    ],
)
def test_mistakes_end_in_one_line_without_traceback(
    arguments: tuple[str, ...], problem: str
) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr


def test_a_file_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "tuning.json").write_text('{"mine": 1}')
    done = run(*SHORT, *EXPOSURE, "--out", tmp_path)
    assert done.exit_code == 2
    assert (tmp_path / "tuning.json").read_text() == '{"mine": 1}'


@pytest.mark.slow
def test_ctrl_c_keeps_finished_trials(tmp_path: Path) -> None:
    arguments = (*SHORT, *EXPOSURE, "--trials", "500", "--out", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-m", "ebrank", "tune", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            deadline = time.monotonic() + PATIENCE
            while len(list(tmp_path.glob("*.npz"))) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 130
    assert len(stdout.splitlines()) == 1  # what was begun, and no results
    assert "trials finished, kept in" in stderr
    assert "Traceback" not in stderr
