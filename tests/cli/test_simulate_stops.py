"""What a stop of `ebrank simulate` leaves behind."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from ebrank.cli import console
from ebrank.cli.lab import one_interrupt_at_a_time
from ebrank.simulation import parallel
from tests.cli.simulating import (
    PATIENCE,
    SHORT,
    TINY,
    only,
    results_in,
    run,
    started,
    wait_until,
    without_seconds,
)

pytestmark = pytest.mark.usefixtures("narrow")

LONG = ("--dataset", "mq2007-like", "--scale", "0.03", "--trials", "400", "--ranker", "ebrank")


def trials_in(folder: Path) -> int:
    return len(list(folder.glob("*.npz")))


@pytest.mark.slow
def test_ctrl_c_reports_and_keeps_finished_trials(tmp_path: Path) -> None:
    with started(*LONG, "--out", tmp_path, "--json", "--jobs", "2") as process:
        wait_until(lambda: trials_in(tmp_path) >= 3, process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    document = only(stdout)
    kept = trials_in(tmp_path)
    assert len(document["warm_ndcg"]["trials"]) == kept >= 3
    (entry,) = results_in(tmp_path)["rankers"]
    assert len(entry["files"]) == len(entry["warm_ndcg"]["trials"]) == kept
    assert f"stopped: {kept} of 400 trials finished, kept in {tmp_path}" in stderr
    assert results_in(tmp_path)["complete"] is False
    assert not list(tmp_path.glob(".*")), "half-written files"
    again = run(*LONG, "--out", tmp_path, "--json", "--trials", "2")
    fresh = run(*LONG, "--json", "--trials", "2")
    assert without_seconds(only(again.stdout)) == without_seconds(only(fresh.stdout))


@pytest.mark.slow
def test_ctrl_c_before_the_first_trial_prints_no_results(tmp_path: Path) -> None:
    endless = ("--sessions", "100000000", "--updates", "100000", "--ranker", "ebrank")
    with started(*TINY, *endless, "--out", tmp_path) as process:
        wait_until((tmp_path / "results.json").exists, process)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert stdout.startswith("mq2007-like×0.01: ")
    assert len(stdout.splitlines()) == 1  # what was begun, and no results
    assert "Traceback" not in stderr


def interrupt(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("rankers", [("bm25",), ("bm25", "ebrank")])
def test_ctrl_c_again_and_again_while_compiling_still_prints_json(
    monkeypatch: pytest.MonkeyPatch, rankers: tuple[str, ...]
) -> None:
    def print_interrupted(value: object) -> None:
        interrupt()
        print_json(value)

    print_json = console.print_json
    monkeypatch.setattr(parallel, "compile_for", interrupt)
    monkeypatch.setattr(console, "print_json", print_interrupted)
    done = run(*SHORT, *(word for name in rankers for word in ("--ranker", name)), "--json")
    assert done.exit_code == 130
    assert done.stderr == f"stopped: 0 of {2 * len(rankers)} trials finished\n"
    document = json.loads(done.stdout)
    for entry in document["rankers"]:
        assert entry["warm_ndcg"] == {"mean": None, "trials": []}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_got_lost_does_not_keep_the_next_one_out() -> None:
    with one_interrupt_at_a_time():
        for _ in range(2):
            with suppress(KeyboardInterrupt):
                interrupt()
                pytest.fail("not interrupted")
        try:
            interrupt()
        except KeyboardInterrupt:
            interrupt()  # ignored: the one before is not dealt with yet
        else:
            pytest.fail("not interrupted")


def test_interrupts_of_others_are_left_alone() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: run(*SHORT, "--ranker", "bm25")).result().exit_code == 0
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as of a job in the background
    try:
        with one_interrupt_at_a_time():
            interrupt()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    with started(*LONG, "--out", tmp_path) as process:
        wait_until(lambda: trials_in(tmp_path) >= 2, process)
        process.kill()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("ebrank_trial*.npz")}
    assert len(times) >= 2  # not always the first two: trials run side by side
    again = run(*LONG, "--out", tmp_path, "--json", "--trials", "3")
    assert again.exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in times} == times
    fresh = run(*LONG, "--json", "--trials", "3")
    assert without_seconds(only(again.stdout)) == without_seconds(only(fresh.stdout))


@pytest.mark.slow
def test_a_disk_that_is_full_names_the_file_and_shows_what_finished(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk; the trial's file is larger than that."""
    order = ("--ranker", "bm25", *SHORT)
    assert run(*order).exit_code == 0  # so that nothing has to be compiled, and kept, below
    words = shlex.join([sys.executable, "-m", "ebrank", "simulate", *order, "--out", str(tmp_path)])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 4; {words}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 2, done
    assert re.search(rf"error: {tmp_path}/bm25_trial\d_\w+\.npz: file too large", done.stderr)
    assert "Cold-NDCG" in done.stdout
    assert re.search(r"bm25 +\.\d{3}", done.stdout), "the trial that could not be kept is shown"
    assert not list(tmp_path.glob(".*")), "no half of a file is left behind"


@pytest.mark.slow
def test_it_says_at_once_what_begins(tmp_path: Path) -> None:
    with started("--ranker", "bm25", "--dataset", tmp_path / "none", "--seed", "3") as process:
        assert process.stderr is not None
        assert (
            process.stderr.readline() == f"ebrank simulate: {tmp_path / 'none'}, 5 trials, seed 3\n"
        )
