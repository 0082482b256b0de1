"""`ebrank data`: tables for people, JSON for scripts, exit codes for both."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data folder, no configuration, a narrow terminal."""
    (tmp_path / "config.toml").write_text("")
    monkeypatch.setenv("EBRANK_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.delenv("EBRANK_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, ["data", *map(str, arguments)], prog_name="ebrank")


def run_json(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the one document on stdout; stderr must be silent."""
    done = run(*arguments, "--json")
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    return done.exit_code, document


def write_fold(folder: Path, features: int = 46, items: int = 7) -> Path:
    folder.mkdir(parents=True)
    for split in ("train", "vali", "test"):
        rows = (
            f"{item % 3} qid:{split} 1:{item} {features}:{item * item}\n" for item in range(items)
        )
        (folder / f"{split}.txt").write_text("".join(rows))
    return folder


# --- list --------------------------------------------------------------------------------------


def test_list_without_a_data_folder() -> None:
    done = run("list")
    assert done.exit_code == 0
    assert "No data folder is set" in done.stdout
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert rows["MSLR-WEB30K"].split()[1:5] == ["31,531", "3,771,125", "136", "0–4"]
    assert rows["MQ2007"].endswith("not found")
    assert rows["mq2007-like"].endswith("built in")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout


def test_list_says_where_datasets_are(tmp_path: Path) -> None:
    write_fold(tmp_path / "sets" / "MQ2008" / "Fold1")
    done = run("list", "--data-dir", tmp_path / "sets")
    assert "MQ2008/Fold1" in done.stdout
    assert f"Data folder: {tmp_path / 'sets'} (from --data-dir)" in done.stdout
    code, document = run_json("list", "--data-dir", tmp_path / "sets")
    assert code == 0
    assert document["data_dir"] == str(tmp_path / "sets")
    paths = {entry["name"]: entry["path"] for entry in document["datasets"]}
    assert paths["MQ2008"] == str(tmp_path / "sets" / "MQ2008" / "Fold1")
    assert paths["MQ2007"] is None


def test_list_says_that_the_data_folder_is_absent() -> None:
    assert "/nowhere (from --data-dir), which does not exist" in run(
        "list", "--data-dir", "/nowhere"
    ).stdout.replace("\n", " ")


def test_list_refuses_a_home_folder_that_is_not_there() -> None:
    done = run("list", "--data-dir", "~no-such-user")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "~no-such-user (from --data-dir): there is no such home folder" in done.stderr


def test_an_empty_path_is_not_the_current_folder(tmp_path: Path) -> None:
    write_fold(tmp_path / "Fold1")
    for verb in ("info", "check"):
        done = run(verb, "")
        assert (done.exit_code, done.stderr) == (2, "error: '' is not a path\n")


# --- info --------------------------------------------------------------------------------------


def test_info_of_a_published_dataset() -> None:
    done = run("info", "mslr-10k")
    text = " ".join(done.stdout.split())
    assert done.exit_code == 0
    for part in (
        "MSLR-WEB10K",
        "10,000 queries, 1,200,192 rows",
        "136; BM25 is feature 110",
        "features 134, 135, 136, made from clicks, are removed",
        "not found: no data folder is set",
        "https://www.microsoft.com/en-us/research/project/mslr/",
        "EBRANK_DATA",
        "Microsoft's own terms",
    ):
        assert part in text


def test_info_as_json(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "sets" / "MQ2007")
    code, document = run_json("info", "MQ2007", "--data-dir", tmp_path / "sets")
    assert code == 0
    assert document["path"] == str(folder)
    assert document["missing"] is None
    assert document["files"]["train"] == {"queries": 1017, "rows": 42158}
    assert (document["baseline_feature"], document["behavior_features"]) == (25, [])


def test_info_of_a_preset() -> None:
    done = run("info", "mq2007-like")
    assert "synthetic" in done.stdout
    assert 'ebrank.load("mq2007-like", scale=0.1)' in done.stdout


def test_info_of_a_folder(tmp_path: Path) -> None:
    code, document = run_json("info", write_fold(tmp_path / "mine", features=136))
    assert code == 0
    assert (document["kind"], document["family"]) == ("folder", "MSLR-WEB")
    assert document["files"]["vali"] == {"queries": 1, "rows": 7}


def test_info_of_nothing() -> None:
    done = run("info", "MQ2O07")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Did you mean MQ2007?" in done.stderr


# --- check -------------------------------------------------------------------------------------


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
    for wrong, told in (("900", "no feature 900 to drop"), (f"1-{features}", "all features")):
        done = run("check", path, "--drop-features", wrong)
        assert (done.exit_code, done.stdout) == (2, "")
        assert told in done.stderr
        code, document = run_json("check", path, "--drop-features", wrong)
        assert (code, document["ok"], document["all"]["features"]) == (2, False, features)
        assert done.stderr == f"error: {document['error']['message']}\n"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1 qid:train 1:x\n", "value 'x' of feature 1"),
        ("1 1:2\n", "1:2"),
        ("3 qid:train 1:1 46:1\n", "label 3 is over the maximum, 2"),
    ],
)
def test_check_of_a_bad_line(line: str, told: str, tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine")
    with (folder / "train.txt").open("a") as file:
        file.write(line)
    done = run("check", folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {folder / 'train.txt'}:8: ")
    assert told in done.stderr
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
