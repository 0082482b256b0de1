"""`ebrank report`: everything again from results.json, and mistakes in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root
from ebrank.experiments.document import write_document, write_times
from tests.report.sample import TIMES, dataset, document


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, ["report", *map(str, arguments)], prog_name="ebrank")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_document(document(), folder)
    write_times(TIMES, folder)
    return folder


@pytest.mark.slow
def test_the_report_is_made_beside_the_results(results: Path) -> None:
    before = (results / "results.json").read_bytes()
    done = run(results)
    assert done.exit_code == 0, done.output
    line = f"{results / 'report.html'}: 2 tables and 2 figures, each also in its own file\n"
    assert done.stdout == line
    assert "1 h 2 min" in (results / "report.html").read_text()
    assert (results / "results.json").read_bytes() == before


@pytest.mark.slow
def test_another_folder_and_json(results: Path, tmp_path: Path) -> None:
    done = run(results, "--out", tmp_path / "new", "--json")
    files = json.loads(done.stdout)["files"]
    assert str(tmp_path / "new" / "LEDGER.md") in files
    assert all(Path(name).is_file() for name in files)


def test_run_times_are_not_needed(tmp_path: Path) -> None:
    bare = replace(dataset("d"), figures=())
    write_document(document(datasets=(bare,)), tmp_path)
    assert run(tmp_path).exit_code == 0
    assert "Run times" not in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no such file. Give a folder that `ebrank reproduce` wrote."),
        ("{", "not the results of a reproduction"),
        ('{"kind": "ebrank simulate"}', "not the results of a reproduction"),
        ('{"kind": "ebrank reproduce", "format": 99}', "the format is 99"),
        ('{"kind": "ebrank reproduce", "format": 3}', "not a Document"),
    ],
)
def test_mistakes_name_the_file_and_the_remedy(
    tmp_path: Path, content: str | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / "results.json").write_text(content)
    done = run(tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {tmp_path / 'results.json'}: ")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "report.html").exists()


def shorter_row(plain: dict[str, Any]) -> None:
    plain["tables"][0]["rows"][1]["cells"].pop()


def shorter_line(plain: dict[str, Any]) -> None:
    plain["datasets"][0]["figures"][0]["panels"][0]["series"][2]["y"].pop()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (shorter_row, "rows[1] has 6 cells for 7 columns - at `$.tables[0]`"),
        (
            shorter_line,
            "y has 11 values for 12 of x - at `$.datasets[0].figures[0].panels[0].series[2]`",
        ),
        (lambda plain: plain.update(datasets=[]), "datasets is empty"),
        (lambda plain: plain.pop("versions"), "missing required field `versions`"),
        (
            lambda plain: plain["datasets"][0].pop("ledger"),
            "missing required field `ledger` - at `$.datasets[0]`",
        ),
    ],
)
def test_damage_is_reported_by_file_and_field(
    tmp_path: Path, damage: Callable[[dict[str, Any]], object], problem: str
) -> None:
    path = write_document(document(), tmp_path)
    plain = json.loads(path.read_text())
    damage(plain)
    path.write_text(json.dumps(plain))
    done = run(tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {path}: ")
    assert problem in done.stderr
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_the_page_of_somebody_else_is_left_alone(results: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    done = run(results, "--out", tmp_path)
    assert done.exit_code == 2
    assert f"{tmp_path / 'report.html'}: no earlier report wrote this file" in done.stderr
    assert "--out OTHER" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
