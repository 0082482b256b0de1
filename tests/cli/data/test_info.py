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
