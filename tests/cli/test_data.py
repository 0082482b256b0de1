"""`ebrank data`, and what other verbs assume about a dataset's columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebrank.lab.data.dataset import SPLITS
from tests.cli.commands import answered, ebrank, good, refused, write_fold

CHOICES = ("--baseline-feature", "none", "--drop-features", "none", "--max-label", "3")


def checked(path: str | Path, *options: str | Path) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the report of `ebrank data check`; stderr must be silent."""
    done = ebrank("data", "check", path, *options, "--json")
    assert done.stderr == ""
    return done.exit_code, json.loads(done.stdout)


# --- list ----------------------------------------------------------------------------------------


def test_list_without_a_data_folder() -> None:
    done = good("data", "list")
    assert "No data folder is set" in done.stdout
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert rows["MSLR-WEB30K"].split()[1:5] == ["31,531", "3,771,125", "136", "0–4"]
    assert rows["MQ2007"].endswith("not found")
    assert rows["mq2007-like"].endswith("built in")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    absent = good("data", "list", "--data-dir", "/nowhere").stdout.replace("\n", " ")
    assert "/nowhere (from --data-dir), which does not exist" in absent


def test_list_says_where_datasets_are(tmp_path: Path) -> None:
    fold = write_fold(tmp_path / "sets" / "MQ2008" / "Fold1")
    where = ("--data-dir", tmp_path / "sets")
    done = good("data", "list", *where)
    assert "MQ2008/Fold1" in done.stdout
    assert f"Data folder: {tmp_path / 'sets'} (from --data-dir)" in done.stdout
    document = answered("data", "list", *where)
    assert document["data_dir"] == str(tmp_path / "sets")
    paths = {entry["name"]: entry["path"] for entry in document["datasets"]}
    assert (paths["MQ2008"], paths["MQ2007"]) == (str(fold), None)


# --- check ---------------------------------------------------------------------------------------


def test_check_of_a_folder(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine")
    done = good("data", "check", folder)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["file", "queries", "rows", "features", "max_label"] in rows
    assert ["test.txt", "1", "7", "46", "2"] in rows
    assert ["all", "3", "21", "46", "2"] in rows
    assert "LETOR 4.0 (by its number of features): baseline feature 25, labels 0–2" in done.stdout
    assert "After preparation: 3 queries (1/1/1), 21 rows, 3 features" in done.stdout
    note = (
        "mine has 46 features, like LETOR 4.0. So feature 25 is the baseline (BM25) and "
        "the largest label is 2. To change this, set --baseline-feature or --max-label."
    )
    assert done.stderr == f"note: {note}\n"
    counts = {"queries": 1, "rows": 7, "features": 46, "max_label": 2}
    every = {**counts, "queries": 3, "rows": 21}
    assert checked(folder) == (
        0,
        {
            "path": str(folder),
            "ok": True,
            "files": [{"path": str(folder / f"{split}.txt"), **counts} for split in SPLITS],
            "all": every,
            "interpretation": {
                "feature_set": "LETOR 4.0",
                "recognized_by": "number of features",
                "baseline_feature": 25,
                "drop_features": [],
                "max_label": 2,
                "assumed": ["baseline_feature", "drop_features", "max_label"],
            },
            "prepared": {**every, "features": 3, "splits": dict.fromkeys(SPLITS, 1)},
            "notes": [note],
            "warnings": [],
            "error": None,
        },
    )
    code, document = checked(folder / "vali.txt")
    assert (code, len(document["files"]), document["all"]["rows"]) == (0, 1, 7)
    assert document["prepared"] is None


def test_check_warns_of_counts_that_are_not_as_published(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "MQ2008" / "Fold1")
    assert good("data", "check", folder / "test.txt").stderr == (
        "warning: MQ2008 (test): 1 queries, expected 156\n"
        "warning: MQ2008 (test): 7 rows, expected 2,874\n"
    )
    code, document = checked("MQ2008", "--data-dir", tmp_path)
    assert (code, len(document["warnings"])) == (0, 6)


def test_check_keeps_features_that_look_like_clicks_if_asked(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", features=136)
    code, document = checked(folder)
    assert (code, document["prepared"]["features"]) == (0, 2)
    assert "features 134-136, derived from clicks, are dropped" in document["notes"][0]
    code, document = checked(folder, *CHOICES)
    assert (code, document["notes"]) == (0, [])
    assert document["interpretation"]["assumed"] == []
    assert (document["prepared"]["features"], document["prepared"]["max_label"]) == (3, 3)
    done = good("data", "check", folder, *CHOICES)
    assert done.stderr == ""
    assert "\nNo baseline feature, labels 0–3\n" in done.stdout


def test_check_refuses_a_set_without_test_queries_and_warns_without_validation(
    tmp_path: Path,
) -> None:
    folder = write_fold(tmp_path / "mine", features=9)
    (folder / "vali.txt").write_text("0 qid:vali 1:1\n")
    code, document = checked(folder, "--baseline-feature", "1")
    assert (code, document["ok"]) == (0, True)
    assert "`tune` and `reproduce` cannot choose parameters" in document["warnings"][0]
    (folder / "test.txt").write_text("".join(f"0 qid:test 1:{i}\n" for i in range(7)))
    said = refused("data", "check", folder)
    assert "no test query of 'mine' has more than 5 candidates and a relevant item" in said
    code, document = checked(folder)
    assert (code, document["ok"]) == (2, False)
    assert document["prepared"]["splits"] == {"train": 1, "vali": 0, "test": 0}


def test_check_of_files_too_small_for_experiments(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", items=5)
    code, document = checked(folder)
    assert (code, document["ok"], document["prepared"]) == (2, False, None)
    assert (document["all"]["rows"], document["warnings"]) == (15, [])
    assert "no training query" in document["error"]["message"]
    assert checked(folder / "train.txt")[0] == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 qid:train 1:x\n", "value 'x' of feature 1"),
        ("1 1:2\n", "1:2"),
        ("3 qid:train 1:1 46:1\n", "label 3 is over the maximum, 2 (that of LETOR 4.0, with"),
    ],
)
def test_check_names_a_bad_line(line: str, message: str, tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine")
    with (folder / "train.txt").open("a") as file:
        file.write(line)
    said = refused("data", "check", folder)
    assert said.startswith(f"error: {folder / 'train.txt'}:8: ")
    assert message in said
    code, document = checked(folder)
    assert (code, document["ok"]) == (2, False)
    error = document["error"]
    assert (error["path"], error["line"]) == (str(folder / "train.txt"), 8)
    assert said == f"error: {error['message']}\n"


@pytest.mark.parametrize("path", ["absent", "MQ2007", "mq2007-like", ".", "~no-such-user/x", ""])
def test_check_of_what_is_not_there_is_json_too(path: str) -> None:
    code, document = checked(path)
    assert (code, document["ok"], document["files"]) == (2, False, [])
    assert document["error"]["message"]


# --- in other verbs ------------------------------------------------------------------------------

SHORT = ("--sessions", "30", "--updates", "2", "--trials", "1", "--dataset", "mine")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("simulate --ranker bm25 --out out", '"features": 3'),
        ("compare bm25 random", ""),
        ("tune --ranker ebrank --param epsilon --grid 0", f" {' '.join(CHOICES)} "),
        ("reproduce --only table1 --out out", f" {' '.join(CHOICES)}"),
    ],
)
def test_assumptions_are_reported_and_can_be_changed(words: str, kept: str) -> None:
    write_fold(Path("mine"), queries=2, items=8, features=136)
    done = good(*words.split(), *SHORT)
    note = "note: mine has 136 features, like MSLR-WEB. So feature 110 is the baseline (BM25), "
    assert done.stderr.count(note) == 1
    assert "note:" not in done.stdout
    done = good(*words.split(), *SHORT, *CHOICES)
    assert "features" not in done.stderr
    files = [path.read_text() for path in Path("out").glob("results.json")]
    assert kept in "".join([done.stdout, *files])
