from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.cli.data.commands import run, run_json, write_fold


def test_check_of_a_folder(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine")
    done = run("check", folder)
    assert (done.exit_code, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["file", "queries", "rows", "features", "max_label"] in rows
    assert ["test.txt", "1", "7", "46", "2"] in rows
    assert ["all", "3", "21", "46", "2"] in rows
    assert "Recognized by the number of features: LETOR 4.0" in done.stdout
    assert "After preparation: 3 queries (1/1/1), 21 rows, 2 features" in done.stdout


def test_check_as_json(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine")
    counts = {"queries": 1, "rows": 7, "features": 46, "max_label": 2}
    assert run_json("check", folder) == (
        0,
        {
            "path": str(folder),
            "ok": True,
            "files": [
                {"path": str(folder / f"{split}.txt"), **counts}
                for split in ("train", "vali", "test")
            ],
            "all": {"queries": 3, "rows": 21, "features": 46, "max_label": 2},
            "family": "LETOR 4.0",
            "prepared": {
                "queries": 3,
                "rows": 21,
                "features": 2,
                "max_label": 2,
                "splits": {"train": 1, "vali": 1, "test": 1},
            },
            "warnings": [],
            "error": None,
        },
    )


def test_check_of_a_file(tmp_path: Path) -> None:
    file = write_fold(tmp_path / "mine") / "vali.txt"
    code, document = run_json("check", file)
    assert code == 0
    assert (len(document["files"]), document["all"]["rows"]) == (1, 7)
    assert document["prepared"] is None


def test_check_refuses_a_fold_where_there_is_no_choice(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "sets" / "Fold2")
    for path in (folder, folder / "train.txt"):
        code, document = run_json("check", path, "--fold", "3")
        assert (code, document["files"]) == (2, [])
        assert document["error"]["message"].endswith(f"{path} is read as it is")
    code, document = run_json("check", tmp_path / "sets", "--fold", "2")
    assert (code, document["path"]) == (0, str(folder))


def test_check_parses_once_even_if_nothing_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ebrank.data import assembly

    monkeypatch.setenv("EBRANK_DATASET_CACHE", str(tmp_path / "config.toml"))  # not a folder
    with patch.object(assembly, "parse_files", wraps=assembly.parse_files) as parses:
        done = run("check", write_fold(tmp_path / "mine"))
    assert (done.exit_code, parses.call_count) == (0, 1)
    assert done.stderr.count("warning: parsed data is not kept") == 1


def test_check_warns_of_counts_that_are_not_as_published(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "MQ2008" / "Fold1")
    done = run("check", folder / "test.txt")
    assert done.exit_code == 0
    assert done.stderr == (
        "warning: MQ2008 (test): 1 queries, expected 156\n"
        "warning: MQ2008 (test): 7 rows, expected 2,874\n"
    )
    code, document = run_json("check", "MQ2008", "--data-dir", tmp_path)
    assert (code, len(document["warnings"])) == (0, 6)


def test_check_of_an_unknown_family(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", features=9)
    code, document = run_json("check", folder)
    assert (code, document["family"], document["prepared"]) == (0, None, None)
    assert "--baseline-feature" in document["warnings"][0]
    code, document = run_json("check", folder, "--baseline-feature", "1", "--drop-features", "9")
    assert (code, document["warnings"]) == (0, [])
    assert document["prepared"]["features"] == 1


def test_check_of_files_too_small_for_experiments(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", items=5)
    code, document = run_json("check", folder)
    assert (code, document["ok"], document["prepared"]) == (2, False, None)
    assert (document["all"]["rows"], document["warnings"]) == (15, [])
    assert "no training query" in document["error"]["message"]
    assert run_json("check", folder / "train.txt")[0] == 0


@pytest.mark.parametrize("features", [46, 9])
@pytest.mark.parametrize("inside", [".", "train.txt"])
def test_check_refuses_features_to_drop_that_do_not_fit(
    features: int, inside: str, tmp_path: Path
) -> None:
    path = write_fold(tmp_path / "mine", features) / inside
    for wrong, message in (("900", "no feature 900 to drop"), (f"1-{features}", "all features")):
        done = run("check", path, "--drop-features", wrong)
        assert (done.exit_code, done.stdout) == (2, "")
        assert message in done.stderr
        code, document = run_json("check", path, "--drop-features", wrong)
        assert (code, document["ok"], document["all"]["features"]) == (2, False, features)
        assert done.stderr == f"error: {document['error']['message']}\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 qid:train 1:x\n", "value 'x' of feature 1"),
        ("1 1:2\n", "1:2"),
        ("3 qid:train 1:1 46:1\n", "label 3 is over the maximum, 2"),
    ],
)
def test_check_of_a_bad_line(line: str, message: str, tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine")
    with (folder / "train.txt").open("a") as file:
        file.write(line)
    done = run("check", folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {folder / 'train.txt'}:8: ")
    assert message in done.stderr
    code, document = run_json("check", folder)
    assert (code, document["ok"]) == (2, False)
    error = document["error"]
    assert (error["path"], error["line"]) == (str(folder / "train.txt"), 8)
    assert done.stderr == f"error: {error['message']}\n"


def test_check_takes_another_scale_of_labels(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine")
    with (folder / "train.txt").open("a") as file:
        file.write("3 qid:train 1:1\n")
    code, document = run_json("check", folder, "--max-label", "4")
    assert (code, document["all"]["max_label"]) == (0, 3)
    assert document["prepared"]["max_label"] == 4


@pytest.mark.parametrize("path", ["absent", "MQ2007", "mq2007-like", ".", "~no-such-user/x", ""])
def test_check_of_what_is_not_there_is_json_too(path: str) -> None:
    code, document = run_json("check", path)
    assert (code, document["ok"], document["files"]) == (2, False, [])
    assert document["error"]["message"]


def test_a_wrong_list_of_features_is_a_usage_error() -> None:
    for wrong in ("x", "3-1", "0", "1-999999999999"):
        done = run("check", ".", "--drop-features", wrong)
        assert done.exit_code == 2
        assert "is not a list of feature numbers such as 1,7,134-136" in done.stderr


def test_a_label_over_any_scale_is_a_usage_error() -> None:
    done = run("check", ".", "--max-label", "31")
    assert done.exit_code == 2
    assert "31 is not in the range 1<=x<=30" in done.stderr


def test_real_data(mq2008_folder: Path, mslr_sample_folder: Path) -> None:
    code, document = run_json("check", mq2008_folder)
    assert (code, document["warnings"]) == (0, [])
    assert document["prepared"]["splits"] == {"train": 469, "vali": 157, "test": 105}
    code, document = run_json("check", mslr_sample_folder)
    assert (code, document["family"], document["prepared"]["features"]) == (0, "MSLR-WEB", 128)


def test_on_a_terminal_the_progress_bar_leaves_stdout_alone(tmp_path: Path) -> None:
    """With stderr a terminal and a slow reader, the bar is drawn there; stdout is still JSON."""
    pty = pytest.importorskip("pty")
    import os

    ours, theirs = pty.openpty()
    code = f"""
import sys, time
import ebrank.cli.console as console
from ebrank.cli import root
console._PATIENCE_SECONDS = 0.0
root.main(["data", "check", {str(write_fold(tmp_path / "mine"))!r}, "--json"], prog_name="ebrank")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, text=True, check=True
    )
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert json.loads(done.stdout)["ok"] is True
    assert "reading" in shown
