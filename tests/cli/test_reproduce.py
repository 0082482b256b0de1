"""`ebrank reproduce`: what it writes and prints, mistakes, and that nothing but the order matters.

The golden test: the same bytes between runs, for any number of jobs, and after being stopped.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root
from ebrank.experiments.document import Document, read_document
from ebrank.experiments.framework.outcome import Cell
from ebrank.report.ledger import tally, themes

PATIENCE = 240  # seconds, should everything have to be compiled first
TINY = ("--scale", "0.01", "--sessions", "120", "--updates", "4", "--seed", "5")
GIVEN = ("--given", "ebrank:epsilon=30", "--given", "ebrank:epsilon=20,estimator=exposure")
SOME = ("--only", "table1,table2,table3,toy,waiting")
ORDER = (*TINY, *GIVEN, *SOME, "--trials", "2")
TABLE = (*TINY, *GIVEN, "--given", "ucbrank:epsilon=1", "--only", "table2", "--trials", "2")
CHANGING = {"times.json", "report.html"}
"""Files that hold run times."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, ["reproduce", *map(str, arguments)], prog_name="ebrank")


@pytest.mark.slow
def test_trials_too_short_to_serve_a_test_query_are_refused() -> None:
    short = ("--scale", "0.01", "--sessions", "1", "--updates", "1", "--trials", "1")
    done = run(*short, *GIVEN, "--given", "ucbrank:epsilon=1", "--only", "time")
    assert done.exit_code == 2
    assert "no test query of mq2007-like×0.01 was served in one of the trials" in done.stderr
    assert "set more --sessions" in done.stderr


@pytest.mark.slow
def test_a_curve_may_begin_after_the_first_update() -> None:
    short = ("--scale", "0.01", "--sessions", "60", "--updates", "20", "--trials", "1")
    done = run(*short, *GIVEN, "--given", "ucbrank:epsilon=1", "--only", "time", "--out", "late")
    assert done.exit_code == 0, done.output
    (data,) = read_document(Path("late")).datasets
    lengths = {panel.title: len(panel.series[0].x) for panel in data.figures[0].panels}
    assert lengths["Run-NDCG"] < lengths["Cold-NDCG"] == 20


@contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run the command as a user would; it does not outlive the test."""
    with subprocess.Popen(
        [sys.executable, "-m", "ebrank", "reproduce", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def written(folder: Path) -> dict[str, bytes]:
    """Return the files that must not depend on anything but the order."""
    files = (path for path in folder.rglob("*") if path.is_file())
    own = (path for path in files if path.parent.name != "trials" and path.name not in CHANGING)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in own}


def trials(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "trials").glob("*.npz")}


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("golden")
    done = run(*ORDER, "--jobs", "1", "--out", folder)
    assert done.exit_code == 0, done.output
    return folder, done


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted")
    assert run(*TABLE, "--jobs", "2", "--out", folder).exit_code == 0
    return folder


def document(golden: tuple[Path, Result]) -> Document:
    return read_document(golden[0])


# --- what comes of it ---------------------------------------------------------------------------


def test_everything_is_there(golden: tuple[Path, Result]) -> None:
    folder, _ = golden
    found = set(written(folder)) | {path.name for path in folder.iterdir()}
    assert {"results.json", "times.json", "report.html", "LEDGER.md", "trials"} <= found
    for name in ("table1", "table2", "table3", "tuning", "waiting"):
        assert {f"tables/{name}.{kind}" for kind in ("md", "tex", "csv")} <= found
    for name in ("toy", "waiting"):
        assert {f"figures/{name}.svg", f"figures/{name}.png"} <= found


def test_the_document_says_what_it_is_of(golden: tuple[Path, Result]) -> None:
    reproduced = document(golden)
    assert reproduced.command == (
        "ebrank reproduce --only table1,table2,table3,toy,waiting "
        "--given ebrank:epsilon=30 --given ebrank:epsilon=20,estimator=exposure "
        "--trials 2 --seed 5 --sessions 120 --updates 4 --scale 0.01"
    )
    assert (reproduced.seed, reproduced.trials, reproduced.config["sessions"]) == (5, 2, 120)
    (data,) = reproduced.datasets
    assert (data.name, data.stands_in_for, data.sessions) == ("mq2007-like×0.01", "MQ2007", 120)
    assert [(one.key, one.seed) for one in data.tuning] == [
        ("ucbrank", -7),
        ("ebrank", None),
        ("ebrank:estimator=exposure", None),
    ]


def test_people_see_table_2_the_findings_by_theme_and_where_the_report_lies(
    golden: tuple[Path, Result],
) -> None:
    folder, done = golden
    lines = done.stdout.splitlines()
    assert "Ranking performance" in lines[0]
    rows = [line for line in lines if re.match(r" *(EBRank|BM25|Oracle)\b.*  \.\d{3} ± ", line)]
    assert len(rows) == 2 * 4  # in eighty columns, Run-NDCG stands below the others
    (data,) = document(golden).datasets
    assert f"mq2007-like×0.01: {tally(data.findings)}" in lines
    by_title = {theme.title: theme for theme in themes(data.findings)}
    assert len(by_title) > 3
    flat = " ".join(done.stdout.split())
    for title, theme in by_title.items():
        assert f" {title}: {tally(theme.findings)}" in flat
    assert " undecided: " in flat
    assert data.test_queries is not None
    assert f"{data.test_queries} test queries, 2 trials: a small run" in flat
    assert lines[-1] == f"Report: {folder / 'report.html'}"
    assert max(map(len, lines[:-1])) <= 80
    assert "\x1b" not in done.stdout


def test_where_published_data_lie_is_nobodys_business(tmp_path: Path) -> None:
    fold = tmp_path / "private" / "MQ2008" / "Fold1"
    fold.mkdir(parents=True)
    for split in ("train", "vali", "test"):
        others = " ".join(f"{number}:0.5" for number in range(3, 47))
        rows = (f"{n % 3} qid:{split} 1:{n} 2:{n % 4} {others}\n" for n in range(12))
        (fold / f"{split}.txt").write_text("".join(rows))
    where = ("--dataset", "MQ2008", "--data-dir", tmp_path / "private")
    done = run(*where, "--sessions", "120", "--only", "table1", "--out", "here")
    assert done.exit_code == 0, done.output
    assert "warning: MQ2008 (train): 1 queries, expected 471" in done.stderr
    reproduced = read_document(Path("here"))
    assert "--dataset MQ2008" in reproduced.command
    assert "--data-dir FOLDER" in reproduced.command
    assert "private" not in Path("here", "results.json").read_text()
    (data,) = reproduced.datasets
    assert "not those of MQ2008 as published" in data.ledger[0].note


def test_json_for_scripts(uninterrupted: Path) -> None:
    done = run(*TABLE, "--out", uninterrupted, "--json")
    plain = json.loads(done.stdout)
    assert plain["out"] == str(uninterrupted)
    (data,) = plain["datasets"]
    entry = next(one for one in data["runs"] if one["key"] == "ebrank")
    (record,) = [
        one for one in read_document(uninterrupted).datasets[0].runs if one.key == "ebrank"
    ]
    assert tuple(entry["warm"]) == record.warm
    keys = {"name", "claim", "verdict", "detail", "theme", "subject", "ours", "effect"}
    assert keys == set(data["findings"][0])


@pytest.mark.slow
def test_rankers_of_ones_own_have_rows_and_are_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own_ranker.py").write_text(
        "from ebrank.rankers.random import Random\n\n"
        "class Mine(Random):\n    name, help = 'mine', 'As random as it gets.'\n"
    )
    monkeypatch.syspath_prepend(".")
    also = ("own_ranker:Mine", "auto", "bm25", "ebrank:epsilon=20")  # the default, but not tuned
    own = (*(word for text in also for word in ("--also", text)), "--tune", "smoothedctr")
    done = run(*TABLE, "--trials", "1", *own, "--out", "a")
    assert done.exit_code == 0, done.output
    reproduced = read_document(Path("a"))
    assert "--also own_ranker:Mine --also auto" in reproduced.command
    assert "--tune smoothedctr" in reproduced.command
    (record,) = (each for each in reproduced.datasets[0].tuning if each.key == "smoothedctr")
    assert record.parameter == "strength"
    assert record.value in [point.value for point in record.grid]
    assert max(record.grid, key=lambda point: sum(point.trials)).value == record.value
    [table] = [table for table in reproduced.tables if table.name == "table2"]
    rows = [row.cells[0] for row in table.rows]
    assert rows[-3:] == ["own_ranker:Mine", "ebrank:epsilon=20", "smoothedctr, tuned"]
    assert rows.count("BM25") == rows.count("auto") == 1, "they have rows anyway"
    by_name = {row.cells[0]: row.cells[1:] for row in table.rows}
    assert by_name["own_ranker:Mine"] == by_name["Random"]


def test_a_ranker_with_nothing_to_tune_is_refused() -> None:
    done = run(*TINY, "--tune", "bm25", "--out", "b")
    assert (done.exit_code, "bm25 has nothing to tune" in done.stderr) == (2, True)


@pytest.mark.slow
def test_what_is_tuned_on_several_datasets_has_one_row_beside_what_is_added() -> None:
    two = ("--dataset", "mq2007-like", "--dataset", "mslr10k-like", "--scale", "0.004")
    own = ("--tune", "smoothedctr", "--also", "smoothedctr:strength=1")
    done = run(*TABLE, *two, "--trials", "1", "--jobs", "1", *own, "--out", "two")
    assert done.exit_code == 0, done.output
    reproduced = read_document(Path("two"))
    chosen = [
        next(each.ranker for each in data.tuning if each.key == "smoothedctr")
        for data in reproduced.datasets
    ]
    assert len(set(chosen)) == 2, "the datasets of this test disagree"
    (table,) = (table for table in reproduced.tables if table.name == "table2")
    cells = {row.cells[0]: row.cells for row in table.rows}
    assert list(cells)[-2:] == ["smoothedctr:strength=1", "smoothedctr, tuned"]
    warm = [cells["smoothedctr, tuned"][place] for place in (2, 9)]
    for data, ranker, cell in zip(reproduced.datasets, chosen, warm, strict=True):
        (record,) = (each for each in data.runs if each.ranker == ranker)
        assert isinstance(cell, Cell)
        assert cell.value == record.warm[0]


def test_what_was_not_run_has_the_command_with_all_that_was_typed() -> None:
    typed = ("--gamma", "0.9", "--also", "ebrank:epsilon=3", "--given", "ebrank:epsilon=30")
    done = run(*TINY, "--trials", "1", *typed, "--only", "table1", "--out", "a")
    assert done.exit_code == 0, done.output
    words = (
        "--given ebrank:epsilon=30 --also ebrank:epsilon=3 --trials 1 --seed 5 --sessions 120 "
        "--updates 4 --gamma 0.9 --scale 0.01"
    )
    ledger = Path("a", "LEDGER.md").read_text()
    for only in ("table2", "table3"):
        assert f"Not run; `ebrank reproduce {words} --only {only}` fills this." in ledger


@pytest.mark.slow
def test_several_datasets_share_tables(tmp_path: Path) -> None:
    done = run(
        *("--dataset", "mq2007-like", "--dataset", "mslr10k-like", "--only", "table1,table3"),
        *(*TINY[2:], "--scale", "0.004", "--trials", "1", "--jobs", "1"),
    )
    assert done.exit_code == 0, done.output
    reproduced = read_document(tmp_path / "reproduction" / "mq2007-like-0.004+mslr10k-like-0.004")
    (table,) = reproduced.tables
    assert [row.cells[0] for row in table.rows] == ["mq2007-like×0.004", "mslr10k-like×0.004"]
    names = [table.name for data in reproduced.datasets for table in data.tables]
    assert names == ["table3-mq2007-like-0.004", "table3-mslr10k-like-0.004"]


def test_a_note_says_what_a_command_leaves_out_of_an_earlier_report(tmp_path: Path) -> None:
    order = (*TINY, "--trials", "1", "--out", tmp_path / "here", "--only")
    first = run(*order, "table1,table3")
    assert (first.exit_code, first.stderr.count("note: ")) == (0, first.stderr.count("compiling"))
    kept = trials(tmp_path / "here")
    second = run(*order, "table1")
    assert second.exit_code == 0, second.output
    assert f"note: {tmp_path / 'here'} also has results of table3, " in second.stderr
    assert "--only table1,table3 brings them back" in second.stderr
    assert trials(tmp_path / "here") == kept
    assert not (tmp_path / "here" / "tables" / "table3.md").exists()


# --- golden -------------------------------------------------------------------------------------


def test_the_recorded_command_makes_the_same_bytes_in_another_process_with_more_jobs(
    golden: tuple[Path, Result],
) -> None:
    words = document(golden).command.split()[2:]
    with started(*words, "--jobs", "2") as process:
        _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, stderr
    expected = written(golden[0])
    assert len(expected) > 25
    assert written(Path("reproduction", "mq2007-like-0.01")) == expected


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_and_gone_on_it_is_the_same(
    uninterrupted: Path, tmp_path: Path, how: signal.Signals
) -> None:
    out = tmp_path / "stopped"
    with started(*TABLE, "--jobs", "2", "--out", out) as process:
        deadline = time.monotonic() + PATIENCE
        while len(trials(out)) < 5:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "nothing happened"
            time.sleep(0.002)
        process.send_signal(how)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    if how == signal.SIGINT:
        assert (process.returncode, stdout) == (130, "")
        stopped = f"stopped; finished trials are kept in {out / 'trials'}"
        message = f"{stopped}; run the same command to continue"
        assert message in stderr
        assert "Traceback" not in stderr
    kept = trials(out)
    assert 5 <= len(kept) < len(trials(uninterrupted)), "stopped too late to tell anything"
    assert not (out / "results.json").exists()
    assert run(*TABLE, "--jobs", "2", "--out", out).exit_code == 0
    assert kept.items() <= trials(out).items(), "run again"
    assert written(out) == written(uninterrupted)


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--only", "tabel2"), "no experiment is called 'tabel2'; did you mean table2?"),
        (("--only", "table1,extra"), "did you mean extras?"),
        (("--given", "bm25"), "bm25 is not a tuned ranker with its value"),
        (("--given", "ebrnk:epsilon=3"), "no ranker is called 'ebrnk'; did you mean ebrank?"),
        (("--dataset", "nowhere"), "nowhere: no such dataset or folder"),
        (("--scale", "0.01", "--sessions", "3"), "3 sessions are too few"),
        (("--scale", "0"), "--scale"),
        (("--jobs", "0"), "--jobs"),
        (("--trials", "0"), "--trials"),
    ],
)
def test_mistakes_end_in_one_line_without_traceback(
    arguments: tuple[str, ...], problem: str
) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("reproduction").exists()


@pytest.mark.parametrize("inner", ["", "trials"])
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, inner: str) -> None:
    (tmp_path / "photos" / inner).mkdir(parents=True)
    (tmp_path / "photos" / "cat.jpg").write_text("a cat")
    done = run(*ORDER, "--out", tmp_path / "photos")
    assert done.exit_code == 2
    assert "photos: the folder holds something else. Choose another --out." in done.stderr
    left = {path.name for path in (tmp_path / "photos").iterdir()}
    assert left == {"cat.jpg", inner} - {""}


def test_results_of_another_command_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"kind": "ebrank simulate"}')
    done = run(*ORDER, "--out", tmp_path)
    assert done.exit_code == 2
    assert "another program wrote this file" in done.stderr


def test_two_datasets_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder / "same").mkdir(parents=True)
        for split in ("train", "vali", "test"):
            rows = (f"{n % 3} qid:{split} 1:{n} 2:{n % 4}\n" for n in range(12))
            (tmp_path / folder / "same" / f"{split}.txt").write_text("".join(rows))
    both = ("--dataset", tmp_path / "a" / "same", "--dataset", tmp_path / "b" / "same")
    done = run(*both, "--sessions", "120", "--baseline-feature", "1", "--only", "table1")
    assert done.exit_code == 2
    assert "two datasets have the name same; reproduce one at a time" in done.stderr
