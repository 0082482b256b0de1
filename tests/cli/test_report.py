"""`ebrank report`: everything again from results.json, and mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root
from ebrank.experiments.document import write_document, write_times
from tests.report.sample import TIMES, document


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, ["report", *map(str, arguments)], prog_name="ebrank")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_document(document(), folder)
    write_times(TIMES, folder)
    return folder


def test_the_report_is_made_beside_the_results(results: Path) -> None:
    before = (results / "results.json").read_bytes()
    done = run(results)
    assert done.exit_code == 0, done.output
    told = f"{results / 'report.html'}: 2 tables and 2 figures, with their files beside it\n"
    assert done.stdout == told
    assert "1 h 2 min" in (results / "report.html").read_text()
    assert (results / "results.json").read_bytes() == before


def test_another_folder_and_json(results: Path, tmp_path: Path) -> None:
    done = run(results, "--out", tmp_path / "new", "--json")
    files = json.loads(done.stdout)["files"]
    assert str(tmp_path / "new" / "LEDGER.md") in files
    assert all(Path(name).is_file() for name in files)


def test_run_times_are_not_needed(tmp_path: Path) -> None:
    write_document(document(datasets=()), tmp_path)
    assert run(tmp_path).exit_code == 0
    assert "Run times" not in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no such file. Give a folder written by ebrank reproduce."),
        ("{", "no results of a reproduction"),
        ('{"kind": "ebrank simulate"}', "no results of a reproduction"),
        ('{"kind": "ebrank reproduce", "format": 99}', "written in format 99"),
        ('{"kind": "ebrank reproduce", "format": 1}', "not a Document"),
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
