from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize("path", ["absent", "MQ2007", "mq2007-like", ".", "~no-such-user/x", ""])
def test_check_of_what_is_not_there_is_json_too(path: str) -> None:
    code, document = run_json("check", path)
    assert (code, document["ok"], document["files"]) == (2, False, [])
    assert document["error"]["message"]


@pytest.mark.parametrize(
    ("option", "wrong", "problem"),
    [
        *(
            ("--drop-features", wrong, "is neither a list of feature numbers such as 1,7,134-136")
            for wrong in ("x", "3-1", "0", "1-999999999999")
        ),
        *(("--baseline-feature", wrong, "is not N|none: a whole number") for wrong in ("x", "1.5")),
        *(("--baseline-feature", wrong, "baseline_feature must be a") for wrong in ("0", "-1")),
        *(("--max-label", wrong, "max_label must be a") for wrong in ("31", "0", "none")),
        ("--fold", "0", "fold must be a whole number of 1 or more"),
        ("--fold", "x", "is not N|all: a whole number"),
    ],
)
def test_an_option_out_of_range_is_refused(
    option: str, wrong: str, problem: str, tmp_path: Path
) -> None:
    done = run("check", write_fold(tmp_path / "mine"), option, wrong)
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
