"""`--cluster`: the files of a local run, from workers that are stopped, killed and restarted."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.addons.clusters import OwnCluster, own_cluster
from tests.cli.commands import (
    LONG,
    PATIENCE,
    SHORT,
    good,
    started,
    trials,
    wait_until,
)

pytestmark = pytest.mark.slow

GIVEN = ("--trials", "1", "--given", "ebrank:epsilon=30")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    with own_cluster(tmp_path_factory.mktemp("nodes"), "one") as cluster:
        yield cluster


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
        good(*words, *where, "--out", out)
    assert (there / file).read_bytes() == (here / file).read_bytes()
    names = [sorted(path.name for path in out.rglob("*.npz")) for out in (here, there)]
    assert names[0] == names[1] != []


def test_a_scheduler_goes_by_its_address(nodes: OwnCluster) -> None:
    address = json.loads(nodes.file.read_text())["address"].replace("tcp://", "dask://")
    words = ("simulate", *SHORT, "--ranker", "bm25", "--json")
    done = good(*words, "--cluster", address)
    [there], [here] = (json.loads(text)["rankers"] for text in (done.stdout, good(*words).stdout))
    assert there["cum_ndcg"] == here["cum_ndcg"]
    assert "distributed" not in done.stderr, "Dask's own words"


def test_processes_of_this_machine_end_with_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    """There, every process of the group gets the signal."""
    words = ("simulate", *LONG, "--out", tmp_path, "--cluster", "local:1")
    with started(*words, start_new_session=True) as process:
        wait_until(lambda: len(trials(tmp_path)) >= 2, process)
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert stdout.startswith("mq2007-like×0.03: 49 queries")
    assert "Traceback" not in stderr
    assert "distributed" not in stderr, "Dask's own words"
    last = stderr.splitlines()[-1]
    assert last.startswith(f"stopped: {len(trials(tmp_path))} of 400 trials finished")
