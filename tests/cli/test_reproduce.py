"""`ebrank reproduce` and `report`: what they write and print, and that only the order matters.

The golden test: the same bytes between runs, for any number of jobs, and after being stopped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ebrank.lab.simulation import parallel
from ebrank.paper.document import read_document, write_document
from ebrank.paper.framework.display import Display
from ebrank.paper.report.ledger import tally, themes
from tests.cli.commands import (
    PATIENCE,
    answered,
    ebrank,
    good,
    refused,
    started,
    trials,
    wait_until,
    write_fold,
)
from tests.paper.report.sample import HOSTILE, document

TINY = ("reproduce", "--scale", "0.01", "--sessions", "120", "--updates", "4", "--seed", "5")
GIVEN = ("--given", "ebrank:epsilon=30", "--given", "ebrank:epsilon=20,estimator=exposure")
SOME = ("--only", "table1,table2,table3,toy,waiting")
ORDER = (*TINY, *GIVEN, *SOME, "--trials", "2")
ALL_GIVEN = (*GIVEN, "--given", "ucbrank:epsilon=1")
TABLE = (*TINY, *ALL_GIVEN, "--only", "table2", "--trials", "1")


def written(folder: Path) -> dict[str, bytes]:
    """Return the files that must not depend on anything but the order."""
    files = (path for path in folder.rglob("*") if path.is_file())
    own = (path for path in files if path.parent.name != "trials")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in own}


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("golden")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        return folder, good(*ORDER, "--jobs", "1", "--out", folder)


@pytest.mark.slow
def test_trials_too_short_to_serve_a_test_query_are_refused() -> None:
    short = ("--sessions", "1", "--updates", "1", "--trials", "1", "--only", "time")
    said = refused(*TINY, *ALL_GIVEN, *short, "--seed", "0")
    assert "no test query of mq2007-like×0.01 was served in one of the trials" in said
    assert "set more --sessions" in said


# --- what comes of it ---------------------------------------------------------------------------


def test_the_document_says_what_it_is_of(golden: tuple[Path, Result]) -> None:
    reproduced = read_document(golden[0])
    assert reproduced.command == (
        "ebrank reproduce --only table1,table2,table3,toy,waiting "
        "--given ebrank:epsilon=30 --given ebrank:epsilon=20,estimator=exposure "
        "--trials 2 --seed 5 --sessions 120 --updates 4 --scale 0.01"
    )
    assert (reproduced.seed, reproduced.trials, reproduced.config["sessions"]) == (5, 2, 120)
    assert (reproduced.name, reproduced.stands_in_for) == ("mq2007-like×0.01", "MQ2007")
    assert reproduced.sessions == 120
    assert [(one.label, one.seed) for one in reproduced.tuning] == [
        ("UCBRank", -7),
        ("EBRank (paper)", None),
        ("EBRank (exposure)", None),
    ]


def test_people_see_table_2_the_findings_by_theme_and_where_the_report_lies(
    golden: tuple[Path, Result],
) -> None:
    folder, done = golden
    lines = done.stdout.splitlines()
    assert "Ranking performance" in lines[0]
    rows = [line for line in lines if re.match(r" *(EBRank|BM25|Oracle)\b.*  \.\d{3} ± ", line)]
    assert len(rows) >= 5
    data = read_document(golden[0])
    assert f"mq2007-like×0.01: {tally(data.findings)}" in lines
    by_title = {theme.title: theme for theme in themes(data.findings)}
    assert len(by_title) > 3
    flat = " ".join(done.stdout.split())
    for title, theme in by_title.items():
        assert f" {title}: {tally(theme.findings)}" in flat
    assert " undecided: " in flat
    assert f"{data.test_queries} test queries, 2 trials: a small run" in flat
    assert " ".join(data.headline.split()) in flat
    assert lines[-1] == f"Report: {folder / 'report.html'}"
    assert max(map(len, lines[:-1])) <= 80
    assert "\x1b" not in done.stdout


def test_where_published_data_lie_is_nobodys_business(tmp_path: Path) -> None:
    write_fold(tmp_path / "private" / "MQ2008" / "Fold1", items=12)
    where = ("--dataset", "MQ2008", "--data-dir", tmp_path / "private")
    users = ("--users", "dcm:cutoff=7", "--list-length", "7", "--click-rate", "0.5")
    done = good("reproduce", *where, "--sessions", "120", *users, "--only", "table1", "--out", "a")
    assert "warning: MQ2008 (train): 1 queries, expected 471" in done.stderr
    reproduced = read_document(Path("a"))
    assert reproduced.command.startswith("ebrank reproduce --only table1 --dataset MQ2008 ")
    assert "--list-length 7 --users dcm:cutoff=7 --click-rate 0.5" in reproduced.command
    assert reproduced.config["users"] == "dcm:cutoff=7"
    assert "--data-dir FOLDER" in reproduced.command
    assert "private" not in Path("a", "results.json").read_text()
    assert "not those of MQ2008 as published" in reproduced.ledger[0].note


def test_json_for_scripts() -> None:
    plain = answered(*TABLE, "--out", "a")
    assert plain["out"] == "a"
    assert tuple(plain["runs"]) == read_document(Path("a")).runs
    keys = {"name", "claim", "verdict", "detail", "theme", "subject", "ours", "effect"}
    assert keys == set(plain["findings"][0])


@pytest.mark.slow
def test_rankers_of_ones_own_have_rows_and_are_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own_ranker.py").write_text(
        "from ebrank.lab.rankers.random import Random\n\n"
        "class Mine(Random):\n    name, help = 'mine', 'As random as it gets.'\n"
    )
    monkeypatch.syspath_prepend(".")
    also = ("own_ranker:Mine", "auto", "bm25", "ebrank:epsilon=20")  # the default, but not tuned
    own = (*(word for text in also for word in ("--also", text)), "--tune", "smoothedctr")
    good(*TABLE, *own, "--out", "a")
    reproduced = read_document(Path("a"))
    assert "--also own_ranker:Mine --also auto" in reproduced.command
    assert "--tune smoothedctr" in reproduced.command
    (record,) = (each for each in reproduced.tuning if each.label == "Smoothed CTR")
    assert record.parameter == "strength"
    assert record.value in [point.value for point in record.grid]
    assert max(record.grid, key=lambda point: sum(point.trials)).value == record.value
    [table] = reproduced.displays["table2"].tables
    rows = [row.cells[0] for row in table.rows]
    assert rows[-3:] == ["own_ranker:Mine", "ebrank:epsilon=20", "smoothedctr, tuned"]
    assert rows.count("BM25") == rows.count("EBRank auto") == 1, "they have rows anyway"
    by_name = {row.cells[0]: row.cells[1:] for row in table.rows}
    assert by_name["own_ranker:Mine"] == by_name["Random"]


def test_what_was_not_run_has_the_command_with_all_that_was_typed() -> None:
    typed = ("--gamma", "0.9", "--also", "ebrank:epsilon=3", "--given", "ebrank:epsilon=30")
    good(*TINY, "--trials", "1", *typed, "--only", "table1", "--out", "a")
    words = (
        "--given ebrank:epsilon=30 --also ebrank:epsilon=3 --trials 1 --seed 5 --sessions 120 "
        "--updates 4 --gamma 0.9 --scale 0.01"
    )
    ledger = Path("a", "LEDGER.md").read_text()
    for only in ("table2", "table3"):
        assert f"Not run; `ebrank reproduce {words} --only {only}` fills this." in ledger


def test_another_command_replaces_the_results_and_keeps_the_trials() -> None:
    order = (*TINY, "--trials", "1", "--out", "here", "--only")
    good(*order, "table1,table3")
    kept = trials(Path("here", "trials"))
    good(*order, "table1")
    assert trials(Path("here", "trials")) == kept
    assert "table3" not in read_document(Path("here")).displays


# --- golden -------------------------------------------------------------------------------------


def test_the_recorded_command_makes_the_same_bytes_killed_and_gone_on_with_more_jobs(
    golden: tuple[Path, Result], tmp_path: Path
) -> None:
    words = (*read_document(golden[0]).command.split()[1:], "--jobs", "2")
    out = tmp_path / "reproduction" / "mq2007-like-0.01"
    with started(*words) as process:
        wait_until(lambda: len(trials(out / "trials")) >= 5, process)
        process.kill()
    kept = trials(out / "trials")
    assert 5 <= len(kept) < len(trials(golden[0] / "trials")), "stopped too late to tell anything"
    assert not (out / "results.json").exists()
    with started(*words) as process:
        _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, stderr
    assert kept.items() <= trials(out / "trials").items(), "run again"
    expected = written(golden[0])
    assert len(expected) > 15
    assert written(out) == expected


def test_ctrl_c_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "compile_for", stop)
    done = ebrank(*TABLE, "--out", "out")
    assert (done.exit_code, done.stdout) == (130, "")
    kept = "finished trials are kept in out/trials"
    assert f"stopped; {kept}; run the same command to continue" in done.stderr
    assert not Path("out", "results.json").exists()


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["", "trials"])
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, inner: str) -> None:
    (tmp_path / "photos" / inner).mkdir(parents=True)
    (tmp_path / "photos" / "cat.jpg").write_text("a cat")
    done = ebrank(*ORDER, "--out", tmp_path / "photos")
    assert done.exit_code == 2
    assert "photos: the folder holds something else. Choose another --out." in done.stderr
    left = {path.name for path in (tmp_path / "photos").iterdir()}
    assert left == {"cat.jpg", inner} - {""}


# --- ebrank report ------------------------------------------------------------------------------


def test_a_report_is_made_again_from_its_results(tmp_path: Path) -> None:
    write_document(document(displays={"table2": Display((HOSTILE,))}), tmp_path)
    files = answered("report", tmp_path)["files"]
    assert str(tmp_path / "LEDGER.md") in files
    assert all(Path(name).is_file() for name in files)


def shorter_row(plain: dict[str, Any]) -> None:
    plain["displays"]["table2"]["tables"][0]["rows"][1]["cells"].pop()


def shorter_line(plain: dict[str, Any], part: str = "y") -> None:
    plain["displays"]["time"]["figures"][0]["panels"][0]["series"][2][part].pop()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (shorter_row, "rows[1] has 6 cells for 7 columns - at `$.displays[...].tables[0]`"),
        (shorter_line, "y has 11 values for 12 of x - at `$.displays[...].figures[0].panels[0]"),
        (lambda plain: shorter_line(plain, "error"), "error has 11 values for 12 of y"),
        (lambda plain: plain.pop("versions"), "missing required field `versions`"),
        (lambda plain: plain.update(kind="ebrank simulate"), "not the results of a reproduction"),
        (lambda plain: plain.update(format=99), "the format is 99"),
        *((text, "not the results of a reproduction") for text in ("{", "", "[]")),
        (None, "no such file. Give a folder that `ebrank reproduce` wrote."),
    ],
)
def test_damage_is_reported_by_file_and_field(
    damage: Callable[[dict[str, Any]], object] | str | None, problem: str, tmp_path: Path
) -> None:
    write_document(document(), tmp_path)
    path = tmp_path / "results.json"
    if damage is None:
        path.unlink()
    elif isinstance(damage, str):
        path.write_text(damage)
    else:
        plain = json.loads(path.read_text())
        damage(plain)
        path.write_text(json.dumps(plain))
    said = refused("report", tmp_path)
    assert said.startswith(f"error: {path}: ")
    assert problem in said
    assert said.count("\n") == 1
    assert not (tmp_path / "report.html").exists()
