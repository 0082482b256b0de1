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
    assert done.exit_code == 0
    assert done.stderr.startswith("note: mine has 46 features, like LETOR 4.0. So feature 25 is ")
    assert done.stderr.count("\n") == 1
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["file", "queries", "rows", "features", "max_label"] in rows
    assert ["test.txt", "1", "7", "46", "2"] in rows
    assert ["all", "3", "21", "46", "2"] in rows
    assert "LETOR 4.0 (by its number of features): baseline feature 25, labels 0–2" in done.stdout
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
            "interpretation": {
                "feature_set": "LETOR 4.0",
                "recognized_by": "number of features",
                "baseline_feature": 25,
                "drop_features": [],
                "max_label": 2,
                "assumed": ["baseline_feature", "drop_features", "max_label"],
            },
            "prepared": {
                "queries": 3,
                "rows": 21,
                "features": 2,
                "max_label": 2,
                "splits": {"train": 1, "vali": 1, "test": 1},
            },
            "notes": [
                "mine has 46 features, like LETOR 4.0. So feature 25 is the baseline (BM25) and "
                "the largest label is 2. To change this, set --baseline-feature or --max-label."
            ],
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
        assert document["error"]["message"].endswith(f"{path} has none")
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
    assert done.stderr.count("warning: parsed data is not cached") == 1


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


def test_check_of_features_of_ones_own(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", features=9)
    code, document = run_json("check", folder)
    assert (code, document["interpretation"]["baseline_feature"]) == (0, None)
    assert "--baseline-feature" in document["notes"][0]
    assert document["prepared"]["features"] == 2
    code, document = run_json("check", folder, "--baseline-feature", "1", "--drop-features", "9")
    assert (code, document["notes"], document["warnings"]) == (0, [], [])
    assert document["prepared"]["features"] == 1


def test_check_keeps_features_that_look_like_clicks_if_asked(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", features=136)
    code, document = run_json("check", folder)
    assert (code, document["prepared"]["features"]) == (0, 1)
    assert "features 134-136, derived from clicks, are dropped" in document["notes"][0]
    options = ("--baseline-feature", "none", "--drop-features", "none", "--max-label", "2")
    code, document = run_json("check", folder, *options)
    assert (code, document["notes"]) == (0, [])
    assert document["interpretation"]["assumed"] == []
    assert document["prepared"]["features"] == 2
    assert document["prepared"]["max_label"] == 2
    done = run("check", folder, *options)
    assert done.stderr == ""
    assert "\nNo baseline feature, labels 0–2\n" in done.stdout


def test_check_refuses_a_set_without_test_queries(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", features=9)
    (folder / "test.txt").write_text("".join(f"0 qid:test 1:{i}\n" for i in range(7)))
    done = run("check", folder)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no test query of 'mine' has more than 5 candidates and a relevant item" in done.stderr
    code, document = run_json("check", folder)
    assert (code, document["ok"]) == (2, False)
    assert document["prepared"]["splits"] == {"train": 1, "vali": 1, "test": 0}


def test_check_warns_of_a_set_without_validation_queries(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", features=9)
    (folder / "vali.txt").write_text("0 qid:vali 1:1\n")
    code, document = run_json("check", folder, "--baseline-feature", "1")
    assert (code, document["ok"]) == (0, True)
    assert "`tune` and `reproduce` cannot choose parameters" in document["warnings"][0]


def test_check_says_where_validation_queries_come_from(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", features=9)
    (folder / "vali.txt").replace(folder / "train.txt.gz")  # not read: there is a train.txt
    rows = [f"{i % 3} qid:{q} 1:{i} 9:{i * i}\n" for q in range(10) for i in range(7)]
    (folder / "train.txt").write_text("".join(rows))
    code, document = run_json("check", folder, "--baseline-feature", "1")
    assert code == 0
    assert document["notes"] == [
        "mine has no vali.txt. 2 of its 10 training queries, chosen by a hash of their ids, are "
        "its validation queries."
    ]
    assert document["prepared"]["splits"] == {"train": 8, "vali": 2, "test": 1}
    assert [Path(file["path"]).name for file in document["files"]] == ["train.txt", "test.txt"]


def test_check_of_a_missing_fold_names_the_others(tmp_path: Path) -> None:
    write_fold(tmp_path / "MQ2008" / "Fold1")
    for path in ("MQ2008", tmp_path / "MQ2008"):
        done = run("check", path, "--data-dir", tmp_path, "--fold", "3")
        assert done.exit_code == 2
        assert "no fold 3 here, only Fold1. Choose one with --fold" in done.stderr


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
        assert "is neither a list of feature numbers such as 1,7,134-136 nor none" in done.stderr


def test_a_wrong_baseline_is_a_usage_error() -> None:
    for wrong in ("x", "0", "1.5", "-1"):
        done = run("check", ".", "--baseline-feature", wrong)
        assert done.exit_code == 2
        assert f"{wrong!r} is neither a feature number from 1 up nor none" in done.stderr


def test_a_label_over_any_scale_is_a_usage_error() -> None:
    for wrong in ("31", "0", "x", "none"):
        done = run("check", ".", "--max-label", wrong)
        assert done.exit_code == 2
        assert f"{wrong!r} is not a label from 1 to 30" in done.stderr


def test_real_data(mq2008_folder: Path, mslr_sample_folder: Path) -> None:
    code, document = run_json("check", mq2008_folder)
    assert (code, document["notes"], document["warnings"]) == (0, [], [])
    assert document["interpretation"]["recognized_by"] == "name"
    assert document["prepared"]["splits"] == {"train": 469, "vali": 157, "test": 105}
    code, document = run_json("check", mslr_sample_folder)
    assert (code, document["prepared"]["features"]) == (0, 128)
    assert "MSLR-WEB30K-sample has 136 features, like MSLR-WEB" in document["notes"][0]


@pytest.mark.slow
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
