from __future__ import annotations

from pathlib import Path

from tests.cli.data.commands import run, run_json, write_fold


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


def test_an_empty_path_is_not_the_current_folder(tmp_path: Path) -> None:
    write_fold(tmp_path / "Fold1")
    for verb in ("info", "check"):
        done = run(verb, "")
        assert (done.exit_code, done.stderr) == (2, "error: '' is not a path\n")
