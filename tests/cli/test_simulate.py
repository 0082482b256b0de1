"""`ebrank simulate`: the numbers of the library, tables and JSON, results on disk, and stops."""

from __future__ import annotations

import json
import re
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ebrank as package
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import simulate
from tests.cli.commands import (
    LONG,
    PATIENCE,
    SHORT,
    TINY,
    answered,
    ebrank,
    good,
    refused,
    results_in,
    started,
    trials,
    wait_until,
    without_seconds,
    write_fold,
)

BM25 = ("simulate", "--ranker", "bm25", *SHORT)
EBRANK = ("simulate", "--ranker", "ebrank", *SHORT)
USERS = "dcm:setting=informational,cutoff=7"


def only(document: dict[str, Any]) -> dict[str, Any]:
    """Return what `--json` says of the only ranker there is, but for its run time."""
    [ranker] = without_seconds(document)["rankers"]
    return dict(ranker)


# --- what is printed -----------------------------------------------------------------------------


def test_trials_too_short_to_serve_a_test_query_keep_their_other_measures() -> None:
    words = (*BM25, "--trials", "1", "--sessions", "1", "--updates", "1", "--seed", "0")
    done = good(*words, "--out", "run")
    assert re.search(r"bm25 +\.\d{3} +\.\d{3} +\.0 +–\n", done.stdout)
    assert "warning: no test query was served in 1 of 1 trial, so there is no" in done.stderr
    assert "set more --sessions" in done.stderr
    document = only(answered(*words))
    assert document["run_ndcg"] == {"mean": None, "trials": [None]}
    assert document["warm_ndcg"]["mean"] is not None
    assert results_in("run")["rankers"][0]["run_ndcg"] == document["run_ndcg"]


@pytest.mark.slow
def test_json_is_one_object_alone_on_stdout_with_the_librarys_numbers() -> None:
    ranker = "ebrank:epsilon=3"
    with started("simulate", "--ranker", ranker, *SHORT, "--json") as process:
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stderr) == (0, "")
    [document] = json.loads(stdout)["rankers"]
    measures = ("cold_ndcg", "warm_ndcg", "cum_ndcg", "run_ndcg")
    labels = ("cold_ndcg_labels", "warm_ndcg_labels", "run_ndcg_labels")
    assert list(document) == ["ranker", *measures, *labels, "sessions", "seconds"]
    config, data = SimulationConfig(sessions=80, updates=4), package.load("mq2007-like", scale=0.01)
    expected = simulate(data, registry.parse(ranker), config, seed=1, trials=2)
    for metric in (*measures, *labels):
        values = getattr(expected, metric)
        assert document[metric] == {"mean": values.mean(), "trials": values.tolist()}
    assert document["sessions"] == 80
    assert 0 < document["seconds"] < 10


def test_a_table_for_people() -> None:
    users = ("--users", USERS, "--click-rate", "0.5", "--list-length", "7")
    done = good(*BM25, "--ranker", "ebrank:estimator=exposure,epsilon=0.5", *users)
    assert done.stderr.startswith("ebrank simulate: mq2007-like, 2 trials, seed 1\n")
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "mq2007-like×0.01: 16 queries, 679 rows; 2 trials of 80 sessions, seed 1, "
        f"{USERS} users, click rate × 0.5"
    )
    assert lines[1].split() == ["ranker", "Cold-NDCG", "Warm-NDCG", "Cum-NDCG", "Run-NDCG"]
    assert lines[3].split()[0] == "bm25"
    assert lines[3].count(" ± ") == 4
    assert [lines[4].split()[0], lines[5].strip()] == ["ebrank:epsilon=0.5,", "estimator=exposure"]
    assert max(map(len, lines[1:])) <= 80
    assert "\x1b" not in done.stdout
    said = refused("simulate", "--ranker", "bm25", "--dataset", "none", "--seed", "3")
    assert said.startswith("ebrank simulate: none, 5 trials, seed 3\n"), "before it is read"
    alone = good(*BM25, "--trials", "1").stdout
    assert "±" not in alone, "one trial has no deviation"
    assert "1 trial of 80 sessions" in alone


def test_any_letor_fold_will_do(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", queries=4, items=12, features=3)
    words = ("simulate", "--dataset", folder, "--ranker", "ebrank", "--trials", "1")
    said = good(*words, "--sessions", "40").stderr
    assert "has no known baseline, so each trial ranks the initial log in a random order" in said
    choices = ("--baseline-feature", "1", "--drop-features", "3")
    done = good(*words, "--sessions", "40", *choices, "--json")
    assert (only(json.loads(done.stdout))["sessions"], done.stderr) == (40, "")


# --- results on disk -----------------------------------------------------------------------------


def test_out_holds_results_and_trials() -> None:
    printed = without_seconds(answered(*BM25, "--ranker", "ebrank", "--out", "a/b"))
    document = results_in("a/b")
    assert document["complete"] is True
    assert (document["seed"], document["trials"]) == (1, 2)
    assert document["config"]["sessions"] == 80
    assert document["versions"]["ebrank"] == package.__version__
    assert document["dataset"]["rows"] == 679
    assert document["rankers"] == printed["rankers"]
    assert len(trials(Path("a/b"))) == 4


def test_the_same_command_reuses_and_more_trials_add(tmp_path: Path) -> None:
    words = (*EBRANK, "--out", tmp_path)
    first = answered(*words)
    kept = trials(tmp_path)
    assert answered(*words, "--jobs", "2") == first  # its seconds, too
    more = only(answered(*words, "--trials", "3"))
    assert more["warm_ndcg"]["trials"][:2] == only(first)["warm_ndcg"]["trials"]
    assert kept.items() <= trials(tmp_path).items()
    assert len(trials(tmp_path)) == 3
    assert only(answered(*words, "--seed", "2"))["warm_ndcg"] != only(first)["warm_ndcg"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"kind": "ebrank other"}', "\x00"])
@pytest.mark.parametrize(
    ("verb", "file"),
    [
        (BM25, "results.json"),
        (("tune", "--ranker", "ebrank", *SHORT), "tuning.json"),
        (("reproduce", "--only", "table1", *TINY), "results.json"),
    ],
)
def test_a_file_of_somebody_else_is_not_written_over(
    verb: tuple[str, ...], file: str, content: str
) -> None:
    Path("out").mkdir()
    Path("out", file).write_text(content)
    done = ebrank(*verb, "--out", "out")
    assert done.exit_code == 2
    assert "another program wrote this file. Choose another --out." in done.stderr
    assert [(path.name, path.read_text()) for path in Path("out").iterdir()] == [(file, content)]


# --- stops ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ctrl_c_reports_and_keeps_finished_trials(tmp_path: Path) -> None:
    words = ("simulate", *LONG, "--out", tmp_path)
    with started(*words, "--json", "--jobs", "2") as process:
        wait_until(lambda: len(trials(tmp_path)) >= 3, process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    kept = len(trials(tmp_path))
    assert len(only(json.loads(stdout))["warm_ndcg"]["trials"]) == kept >= 3
    [entry] = results_in(tmp_path)["rankers"]
    assert len(entry["warm_ndcg"]["trials"]) == kept
    assert f"stopped: {kept} of 400 trials finished, kept in {tmp_path}" in stderr
    assert results_in(tmp_path)["complete"] is False
    assert not list(tmp_path.glob(".*")), "half-written files"


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limit the size of files, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_names_the_file(tmp_path: Path) -> None:
    good(*BM25)  # so that nothing has to be compiled, and kept, below
    with files_of_at_most(4096):  # the trial's file is larger than that
        done = ebrank(*BM25, "--out", tmp_path)
    assert done.exit_code == 2, done.output
    assert re.search(rf"error: {tmp_path}/bm25_trial\d_\w+\.npz: file too large", done.stderr)
    assert not list(tmp_path.glob(".*")), "no half of a file is left behind"
