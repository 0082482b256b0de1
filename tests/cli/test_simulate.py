"""`ebrank simulate`: the numbers of the library, tables and JSON, and results on disk."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ebrank
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import simulate
from tests.cli.simulating import (
    PATIENCE,
    SHORT,
    TINY,
    only,
    results_in,
    run,
    started,
    without_seconds,
)

pytestmark = pytest.mark.usefixtures("narrow")


# --- what is printed ---------------------------------------------------------------------------


def test_trials_too_short_to_serve_a_test_query_keep_their_other_measures(tmp_path: Path) -> None:
    arguments = ("--ranker", "bm25", *TINY, "--trials", "1", "--sessions", "1", "--updates", "1")
    done = run(*arguments, "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert re.search(r"bm25 +\.\d{3} +\.\d{3} +\.0 +–\n", done.stdout)
    assert "warning: no test query was served in 1 of 1 trial, so there is no" in done.stderr
    assert "set more --sessions" in done.stderr
    document = only(run(*arguments, "--json").stdout)
    assert document["run_ndcg"] == {"mean": None, "trials": [None]}
    assert document["warm_ndcg"]["mean"] is not None
    assert results_in(tmp_path)["rankers"][0]["run_ndcg"] == document["run_ndcg"]


@pytest.mark.slow
def test_json_is_one_object_alone_on_stdout_with_the_librarys_numbers() -> None:
    arguments = ("--ranker", "ebrank:epsilon=3", "--seed", "5", "--eta", "0.5", "--json")
    with started(*SHORT, *arguments) as process:
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, stderr
    assert list(json.loads(stdout)) == ["rankers"]
    document = only(stdout)
    assert list(document) == [
        "ranker",
        "cold_ndcg",
        "warm_ndcg",
        "cum_ndcg",
        "run_ndcg",
        "cold_ndcg_labels",
        "warm_ndcg_labels",
        "run_ndcg_labels",
        "sessions",
        "seconds",
    ]
    config = SimulationConfig(entering_probability=0.5, sessions=80, updates=4)
    expected = simulate(
        ebrank.load("mq2007-like", scale=0.01),
        registry.parse("ebrank:epsilon=3"),
        config,
        seed=5,
        trials=2,
    )
    for metric in (name for name in document if "_ndcg" in name):
        values = getattr(expected, metric)
        assert document[metric] == {"mean": values.mean(), "trials": values.tolist()}
    assert document["sessions"] == 80
    assert 0 < document["seconds"] < 10


def test_the_formula_gives_the_sessions() -> None:
    done = run(*TINY, "--ranker", "bm25", "--trials", "1", "--json")
    data = ebrank.load("mq2007-like", scale=0.01)
    assert only(done.stdout)["sessions"] == data.n_rows - 5 * data.n_queries


def test_a_table_for_people() -> None:
    done = run(*SHORT, "--ranker", "bm25", "--ranker", "ebrank:estimator=exposure,epsilon=0.5")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("mq2007-like×0.01: 16 queries, 679 rows; 2 trials of 80 sessions")
    assert lines[1].split() == ["ranker", "Cold-NDCG", "Warm-NDCG", "Cum-NDCG", "Run-NDCG"]
    assert lines[3].split()[0] == "bm25"
    assert lines[3].count(" ± ") == 4
    assert [lines[4].split()[0], lines[5].strip()] == ["ebrank:epsilon=0.5,", "estimator=exposure"]
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout


def test_one_trial_has_no_deviation() -> None:
    done = run(*SHORT, "--ranker", "bm25", "--trials", "1")
    assert "±" not in done.stdout
    assert "1 trial of 80 sessions" in done.stdout


def test_several_rankers_in_json() -> None:
    done = run(*SHORT, "--ranker", "bm25", "--ranker", "ebrank", "--ranker", "bm25", "--json")
    rankers = json.loads(done.stdout)["rankers"]
    assert [ranker["ranker"] for ranker in rankers] == ["bm25", "ebrank"]
    alone = only(run(*SHORT, "--ranker", "ebrank", "--json").stdout)
    assert without_seconds(rankers[1]) == without_seconds(alone)


def test_jobs_do_not_matter() -> None:
    one, three = (
        only(run(*SHORT, "--ranker", "ebrank", "--jobs", jobs, "--json").stdout)
        for jobs in ("1", "3")
    )
    assert without_seconds(one) == without_seconds(three)


def test_any_letor_fold_will_do(tmp_path: Path) -> None:
    for split in ("train", "vali", "test"):
        rows = (
            f"{item % 3} qid:{split}{query} 1:{item + query} 2:{item % 4} 3:{item % 3}\n"
            for query in range(4)
            for item in range(12)
        )
        (tmp_path / f"{split}.txt").write_text("".join(rows))
    arguments = ("--dataset", tmp_path, "--ranker", "ebrank", "--trials", "1", "--sessions", "40")
    done = run(*arguments)
    assert done.exit_code == 0, done.stderr
    assert "has no known baseline, so each trial ranks the initial log in a random order" in (
        done.stderr
    )
    done = run(*arguments, "--baseline-feature", "1", "--drop-features", "3", "--json")
    assert done.exit_code == 0, done.stderr
    assert (only(done.stdout)["sessions"], done.stderr) == (40, "")


@pytest.mark.slow
def test_the_first_run_says_that_it_compiles(tmp_path: Path) -> None:
    code = """
from ebrank.cli.lab import note_of_compilation
from ebrank.kernels.compiled import kernel
@kernel
def fresh(x): return x + 1
for _ in range(2):
    with note_of_compilation():
        fresh(1)
"""
    (tmp_path / "fresh.py").write_text(code)
    done = subprocess.run(
        [sys.executable, tmp_path / "fresh.py"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "EBRANK_CACHE": str(tmp_path / "cache")},
    )
    assert done.stdout == ""
    assert done.stderr.count("note: compiling for this machine") == 1


# --- mistakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((*SHORT, "--ranker", "ebrnk"), "no ranker is called 'ebrnk'; did you mean ebrank?"),
        (
            (*SHORT, "--ranker", "ebrank:eps=1"),
            "ebrank has no parameter 'eps'; did you mean epsilon?",
        ),
        ((*SHORT, "--ranker", "ebrank:epsilon=-1"), "epsilon takes a number of 0 or more"),
        ((*TINY, "--ranker", "bm25", "--sessions", "3"), "3 sessions are too few"),
        (("--dataset", "nowhere", "--ranker", "bm25"), "nowhere"),
        ((*SHORT, "--ranker", "bm25", "--eta", "0"), "--eta"),
        ((*TINY, "--ranker", "bm25", "--eta", "1e-9"), "sessions do not fit in memory"),
        ((*TINY, "--ranker", "bm25", "--sessions", "9" * 20), "sessions do not fit in memory"),
        ((*SHORT, "--ranker", "bm25", "--jobs", "0"), "--jobs"),
        ((*SHORT, "--ranker", "bm25", "--seed", str(2**63)), "too large"),
        ((*SHORT, "--ranker", "bm25", "--seed", "-1"), "--seed"),
        (SHORT, "--ranker"),
    ],
)
def test_mistakes_end_in_one_line_without_traceback(
    arguments: tuple[str, ...], problem: str
) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


# --- results on disk ---------------------------------------------------------------------------


def test_out_holds_results_and_trials(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    printed = run(*SHORT, "--ranker", "bm25", "--ranker", "ebrank", "--out", out, "--json")
    document = results_in(out)
    assert document["complete"] is True
    assert (document["seed"], document["trials"]) == (0, 2)
    assert document["config"]["sessions"] == 80
    assert document["versions"]["ebrank"] == ebrank.__version__
    assert document["dataset"]["rows"] == 679
    files = [name for ranker in document["rankers"] for name in ranker.pop("files")]
    assert document["rankers"] == [
        without_seconds(ranker) for ranker in json.loads(printed.stdout)["rankers"]
    ]
    assert sorted(files) == sorted(path.name for path in out.glob("*.npz"))
    assert len(files) == 4


def test_the_same_command_reuses_and_more_trials_add(tmp_path: Path) -> None:
    arguments = (*SHORT, "--ranker", "ebrank", "--out", tmp_path, "--json")
    first = only(run(*arguments).stdout)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert only(run(*arguments, "--jobs", "2").stdout) == first  # its seconds, too
    more = only(run(*arguments, "--trials", "3").stdout)
    assert more["warm_ndcg"]["trials"][:2] == first["warm_ndcg"]["trials"]
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert len(list(tmp_path.glob("*.npz"))) == 3
    other = only(run(*arguments, "--seed", "1").stdout)
    assert other["warm_ndcg"] != first["warm_ndcg"]


def test_results_of_other_rankers_stay_while_all_else_is_the_same(tmp_path: Path) -> None:
    for ranker in ("bm25", "random", "bm25"):
        run(*SHORT, "--ranker", ranker, "--out", tmp_path)
    entries = results_in(tmp_path)["rankers"]
    assert [entry["ranker"] for entry in entries] == ["random", "bm25"]
    files = [name for entry in entries for name in entry["files"]]
    assert sorted(files) == sorted(path.name for path in tmp_path.glob("*.npz"))
    assert all(len(entry["warm_ndcg"]["trials"]) == 2 for entry in entries)
    for other in (("--seed", "1"), ("--eta", "0.5"), ("--scale", "0.02")):
        run(*SHORT, "--ranker", "random", "--out", tmp_path)
        run(*SHORT, *other, "--ranker", "bm25", "--out", tmp_path)
        assert [entry["ranker"] for entry in results_in(tmp_path)["rankers"]] == ["bm25"]


def test_a_damaged_trial_is_run_again_with_a_warning(tmp_path: Path) -> None:
    arguments = (*SHORT, "--ranker", "bm25", "--out", tmp_path, "--json")
    first = only(run(*arguments).stdout)
    damaged = min(tmp_path.glob("*.npz"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    again = run(*arguments)
    assert again.stderr == (
        f"warning: {damaged}: damaged, or not a trial of a simulation; the trial is run again\n"
    )
    assert without_seconds(only(again.stdout)) == without_seconds(first)
    assert run(*arguments).stderr == ""


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"kind": "ebrank tune"}', "\x00"])
def test_a_file_of_somebody_else_is_not_written_over(tmp_path: Path, content: str) -> None:
    (tmp_path / "results.json").write_text(content)
    done = run(*SHORT, "--ranker", "bm25", "--out", tmp_path)
    assert done.exit_code == 2
    assert "another program wrote this file. Choose another --out." in done.stderr
    assert (tmp_path / "results.json").read_text() == content
    assert not list(tmp_path.glob("*.npz"))


def test_out_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run(*SHORT, "--ranker", "bm25", "--out", tmp_path / "file").exit_code == 2
