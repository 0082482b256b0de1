"""`--cluster`: the files of a local run, from workers that are stopped, killed and restarted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root
from tests.cli.simulating import PATIENCE, SHORT, TINY, only, results_in, started, wait_until
from tests.simulation.clusters import OwnCluster, own_cluster, set_variable

pytestmark = pytest.mark.usefixtures("narrow")

LONG = ("--dataset", "mq2007-like", "--scale", "0.03", "--trials", "400", "--ranker", "ebrank")
GIVEN = ("--trials", "1", "--given", "ebrank:epsilon=30")
VERBS = ("simulate", "tune", "compare", "reproduce")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    with own_cluster(tmp_path_factory.mktemp("nodes"), "one") as cluster:
        yield cluster


def invoke(*words: str | Path) -> Result:
    done = CliRunner().invoke(root, [*map(str, words)], prog_name="ebrank")
    if isinstance(done.exception, BaseException) and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_the_option_and_an_example(verb: str) -> None:
    text = invoke(verb, "--help").stdout
    options, _, examples = text.partition("Examples:")
    assert "--cluster ADDRESS" in options
    assert "--cluster " in examples


def test_jobs_and_cluster_exclude_each_other() -> None:
    for words in (("simulate", *SHORT, "--ranker", "bm25"), ("reproduce",)):
        done = invoke(*words, "--cluster", "local:2", "--jobs", "2")
        assert done.exit_code == 2
        assert "--jobs applies to this machine only" in done.stderr


def test_a_wrong_address_is_told_before_anything_is_read() -> None:
    done = invoke("simulate", *SHORT, "--ranker", "bm25", "--cluster", "ftp://node:1")
    assert done.exit_code == 2
    assert "'ftp://node:1' is not the address of a cluster. Use dask://HOST:PORT" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("simulate", *SHORT, "--ranker", "bm25", "--ranker", "ebrank"), "results.json"),
        (("tune", *SHORT, "--ranker", "ebrank", "--param", "epsilon"), "tuning.json"),
        (("compare", "bm25", "ebrank", "--users", "dcm", *SHORT), "results.json"),
        (("reproduce", *SHORT, "--only", "table3", *GIVEN), "results.json"),
    ],
)
def test_files_are_those_of_a_local_run_to_the_byte(
    nodes: OwnCluster, tmp_path: Path, words: tuple[str, ...], file: str
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for out, where in ((here, ()), (there, ("--cluster", str(nodes.file)))):
        done = invoke(*words, *where, "--out", out)
        assert done.exit_code == 0, done.output
    assert (there / file).read_bytes() == (here / file).read_bytes()
    names = [sorted(path.name for path in out.rglob("*.npz")) for out in (here, there)]
    assert names[0] == names[1] != []


@pytest.mark.slow
def test_a_scheduler_goes_by_its_address(nodes: OwnCluster) -> None:
    address = json.loads(nodes.file.read_text())["address"].replace("tcp://", "dask://")
    done = invoke("simulate", *SHORT, "--ranker", "bm25", "--json", "--cluster", address)
    local = invoke("simulate", *SHORT, "--ranker", "bm25", "--json")
    assert only(done.stdout)["cum_ndcg"] == only(local.stdout)["cum_ndcg"]
    assert "distributed" not in done.stderr, "Dask's own words"


def trials_in(folder: Path) -> int:
    return len(list(folder.glob("*.npz")))


@pytest.mark.slow
def test_ctrl_c_keeps_finished_trials_and_the_next_run_goes_on(
    nodes: OwnCluster, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    with started(*LONG, "--out", out, "--cluster", nodes.file) as process:
        wait_until(lambda: trials_in(out) >= 3, process)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    kept = trials_in(out)
    assert f"stopped: {kept} of 400 trials finished, kept in {out}" in stderr
    assert results_in(out)["complete"] is False
    times = {path: path.stat().st_mtime_ns for path in out.glob("*.npz")}
    more = str(kept + 2)
    again = invoke("simulate", *LONG, "--trials", more, "--out", out, "--cluster", nodes.file)
    assert again.exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in times} == times
    invoke("simulate", *LONG, "--trials", more, "--out", tmp_path / "fresh")
    results = [(folder / "results.json").read_bytes() for folder in (out, tmp_path / "fresh")]
    assert results[0] == results[1]


@pytest.mark.slow
def test_workers_of_a_client_that_was_killed_are_free_again(
    nodes: OwnCluster, tmp_path: Path
) -> None:
    endless = ("--sessions", "100000000", "--updates", "100000", "--ranker", "ebrank")
    with started(*TINY, *endless, "--cluster", nodes.file) as process:
        wait_until(lambda: nodes.running() == 1, process)
        process.kill()
    deadline = threading.Event()
    for _ in range(PATIENCE * 4):
        if nodes.running() == 0:
            break
        deadline.wait(0.25)
    assert nodes.running() == 0


@pytest.mark.slow
def test_processes_of_this_machine_end_with_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    """There, every process of the group gets the signal."""
    words = ("simulate", *LONG, "--out", str(tmp_path), "--cluster", "local:1")
    with subprocess.Popen(
        [sys.executable, "-m", "ebrank", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            wait_until(lambda: trials_in(tmp_path) >= 2, process)
            os.killpg(process.pid, signal.SIGINT)
            stdout, stderr = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 130
    assert stdout.startswith("mq2007-like×0.03: 49 queries")
    assert "Traceback" not in stderr
    assert "distributed" not in stderr, "Dask's own words"
    assert stderr.splitlines()[-1].startswith(
        f"stopped: {trials_in(tmp_path)} of 400 trials finished"
    )


def write_mq2008(folder: Path, label: int) -> None:
    """Write a few queries where MQ2008 would be; some label differs."""
    fold = folder / "MQ2008" / "Fold1"
    fold.mkdir(parents=True)
    for number, split in enumerate(("train", "vali", "test")):
        rows = [
            " ".join(
                [
                    str(label if item == 0 else (item + query) % 2),
                    f"qid:{number}{query}",
                    *(f"{feature}:{(item * feature) % 7 / 7:.3f}" for feature in range(1, 47)),
                ]
            )
            for query in range(4)
            for item in range(8)
        ]
        (fold / f"{split}.txt").write_text("\n".join(rows) + "\n")


@pytest.mark.slow
def test_a_worker_that_has_other_data_under_the_same_name_is_refused(
    nodes: OwnCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, label in (("here", 2), ("same", 2), ("other", 1)):
        write_mq2008(tmp_path / folder, label)
    monkeypatch.setenv("EBRANK_DATA", str(tmp_path / "here"))
    words = ("simulate", "--dataset", "MQ2008", "--sessions", "40", "--updates", "2")
    where = ("--ranker", "bm25", "--trials", "2", "--cluster", str(nodes.file))
    for folder, problem in (
        ("nowhere", "worker one cannot load MQ2008: MQ2008 was not found"),
        ("other", "worker one has different data for MQ2008: fingerprint"),
    ):
        nodes.client.run(set_variable, "EBRANK_DATA", str(tmp_path / folder))
        done = invoke(*words, *where)
        assert done.exit_code == 2
        assert problem in done.stderr
    nodes.client.run(set_variable, "EBRANK_DATA", str(tmp_path / "same"))
    assert invoke(*words, *where).exit_code == 0
