from __future__ import annotations

from pathlib import Path

from tests.cli.data.commands import run, run_json, write_fold


def test_info_of_a_published_dataset() -> None:
    done = run("info", "mslr-10k")
    text = " ".join(done.stdout.split())
    assert done.exit_code == 0
    for part in (
        "MSLR-WEB10K",
        "10,000 queries, 1,200,192 rows",
        "features 136",
        "baseline feature 110 (BM25)",
        "features 134-136, derived from clicks, are removed",
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
    assert document["interpretation"]["baseline_feature"] == 25
    assert (document["interpretation"]["assumed"], document["notes"]) == ([], [])


def test_info_of_a_preset() -> None:
    done = run("info", "mq2007-like")
    assert "synthetic" in done.stdout
    assert 'ebrank.load("mq2007-like", scale=0.1)' in done.stdout


def test_info_of_a_folder(tmp_path: Path) -> None:
    code, document = run_json("info", write_fold(tmp_path / "mine", features=136))
    assert code == 0
    assert (document["kind"], document["features"]) == ("folder", 136)
    assert document["interpretation"]["feature_set"] == "MSLR-WEB"
    assert document["interpretation"]["drop_features"] == [134, 135, 136]
    assert "mine has 136 features, like MSLR-WEB" in document["notes"][0]
    assert document["files"]["vali"] == {"queries": 1, "rows": 7}
    done = run("info", tmp_path / "mine")
    assert "folder, MSLR-WEB features (by their number)" in done.stdout
    assert done.stderr.startswith("note: mine has 136 features, like MSLR-WEB. So feature 110 ")


def test_info_takes_choices(tmp_path: Path) -> None:
    write_fold(tmp_path / "mine" / "Fold2", features=136)
    options = ("--drop-features", "none", "--baseline-feature", "none", "--max-label", "3")
    done = run("info", tmp_path / "mine", "--fold", "2", *options)
    text = " ".join(done.stdout.split())
    assert (done.exit_code, done.stderr) == (0, "")
    assert "baseline none; the initial order is random" in text
    assert "labels 0–3" in text
    assert "derived from clicks" not in text
    code, document = run_json("info", "MSLR-WEB10K", "--drop-features", "none")
    assert (code, document["interpretation"]["drop_features"]) == (0, [])
    code, document = run_json("info", "mq2007-like", "--drop-features", "1,2")
    assert (code, document["interpretation"]["drop_features"]) == (0, [1, 2])
    done = run("info", "mq2007-like", "--max-label", "3")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "max_label works only with files" in done.stderr
