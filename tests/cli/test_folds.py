"""`--fold all`, and the files of single queries, by the commands."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from ebrank.cli import lab
from ebrank.experiments.document import read_document
from ebrank.simulation import parallel
from tests.cli.comparing import ebrank

pytestmark = pytest.mark.slow

SHORT = ("--sessions", "60", "--updates", "2", "--trials", "2")


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folds with the queries of each split in turn."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    parts = {
        part: "".join(
            f"{item % 3} qid:{part}{query} "
            + " ".join(f"{number}:{item % 3 + rng.normal():.3f}" for number in range(1, 5))
            + "\n"
            for query in range(6)
            for item in range(9)
        )
        for part in "abc"
    }
    for fold, order in (("Fold1", "abc"), ("Fold2", "bca")):
        (tmp_path / "mine" / fold).mkdir(parents=True)
        for split, part in zip(("train", "vali", "test"), order, strict=True):
            (tmp_path / "mine" / fold / f"{split}.txt").write_text(parts[part])
    return tmp_path / "mine"


def test_all_folds_are_pooled(dataset: Path) -> None:
    rankers = ("--ranker", "bm25", "--ranker", "ebrank")
    whole = ("simulate", "--dataset", dataset, *rankers, *SHORT, "--json")
    files = ("--per-query", "queries.csv", "--trec", "trec", "--out", "runs")
    done = ebrank(*whole, "--fold", "all", *files)
    assert done.exit_code == 0, done.output
    pooled = json.loads(done.stdout)["rankers"]
    folds = [json.loads(ebrank(*whole, "--fold", fold).stdout)["rankers"] for fold in ("1", "2")]
    for both, one, two in zip(pooled, *folds, strict=True):
        for metric in ("cold_ndcg", "warm_ndcg", "cum_ndcg", "run_ndcg"):
            expected = (one[metric]["mean"] + two[metric]["mean"]) / 2  # folds of one size
            assert both[metric]["mean"] == pytest.approx(expected)
        assert both["sessions"] == 120
    said = ebrank(*whole[:-1], "--fold", "all")
    assert "fold 1: 18 queries" in said.stdout
    assert "mine, fold 2, 2 trials" in said.stderr
    with Path("queries.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["fold"], row["query"][0]) for row in rows} == {("1", "c"), ("2", "a")}
    assert len(rows) == 2 * 2 * (6 + 6)
    assert Path("trec", "Fold2", "qrels.txt").read_text().startswith("a0 0 a0.1 0\n")
    assert len(list(Path("runs", "Fold1").glob("*.npz"))) == 4
    with np.load(next(Path("runs", "Fold1").glob("*.npz"))) as trial:
        assert trial["query_ids"].tolist() == [f"c{query}" for query in range(6)]


def test_a_comparison_is_over_the_queries_of_all_folds(dataset: Path) -> None:
    order = ("compare", "bm25", "oracle", "--dataset", dataset, *SHORT, "--json")
    whole, first = (json.loads(ebrank(*order, "--fold", fold).stdout) for fold in ("all", "1"))
    assert whole["dataset"].endswith(", 2 folds")
    p_values = [document["pairs"][1]["p_value"] for document in (whole, first)]
    assert p_values == [2 / 2**12, 2 / 2**6], "twelve queries decide more than six"


def test_tuning_chooses_in_each_fold(dataset: Path) -> None:
    grid = ("--param", "epsilon", "--grid", "0,5,50")
    order = ("tune", "--dataset", dataset, "--ranker", "ebrank", *grid, *SHORT, "--seed", "4")
    done = ebrank(*order, "--fold", "all", "--out", "tuned", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert [fold["dataset"]["fold"] for fold in document["folds"]] == [1, 2]
    for number, fold in enumerate(document["folds"], 1):
        alone = ebrank(*order, "--fold", str(number), "--out", f"tuned/Fold{number}", "--json")
        assert json.loads(alone.stdout).items() >= fold.items(), "as it chooses alone"
        assert json.loads(Path(f"tuned/Fold{number}/tuning.json").read_text()) == fold
        assert len(list(Path(f"tuned/Fold{number}").glob("*.npz"))) == 6, "none was run twice"
    best = [fold["best"]["values"]["epsilon"] for fold in document["folds"]]
    assert best[0] != best[1]
    text = f"ebrank:epsilon={best[0]:g}/{best[1]:g}"
    assert document["best"] == {"ranker": text}

    said = ebrank(*order, "--fold", "all", "--out", "tuned")
    lines = said.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == [f"mine/Fold{n}, fold {n}" for n in (1, 2)]
    assert lines[2].split() == ["epsilon", "fold", "1", "fold", "2"]
    rows = {line.split()[0]: line for line in lines[4:7]}
    for value in best:
        assert "*" in rows[f"{value:g}"]
    assert sum(line.count("*") for line in rows.values()) == 2
    _, _, words = lines[-1].partition("Use it: ebrank ")
    assert words.endswith(f"--fold all --ranker {text}")
    used = ebrank(*words.split(), "--json")
    assert json.loads(used.stdout)["rankers"][0]["ranker"] == text


def test_a_parameter_may_have_a_value_for_each_fold(dataset: Path) -> None:
    run = ("simulate", "--dataset", dataset, *SHORT, "--json")
    texts = ("--ranker", "ebrank:epsilon=0/50", "--ranker", "ebrank:epsilon=0")
    done = ebrank(*run, "--fold", "all", *texts, "--out", "runs")
    assert done.exit_code == 0, done.output
    split, same = json.loads(done.stdout)["rankers"]
    assert split["ranker"] == "ebrank:epsilon=0/50"
    assert len(list(Path("runs", "Fold1").glob("*.npz"))) == 2, "one ranker there"
    alone = [
        json.loads(ebrank(*run, "--fold", fold, "--ranker", f"ebrank:epsilon={value}").stdout)
        for fold, value in (("1", "0"), ("2", "50"))
    ]
    means = [document["rankers"][0]["cum_ndcg"]["mean"] for document in alone]
    assert split["cum_ndcg"]["mean"] == pytest.approx(sum(means) / 2)
    assert split["cum_ndcg"] != same["cum_ndcg"]
    done = ebrank(*run, "--fold", "all", "--ranker", "ebrank:epsilon=0/1/2")
    assert "3 values for 2 folds; give one for each fold, or one for all" in done.stderr


def test_a_reproduction_pools_folds(dataset: Path) -> None:
    tuned = ("ebrank:epsilon=30", "ebrank:epsilon=20,estimator=exposure", "ucbrank:epsilon=0.01")
    given = [word for ranker in tuned for word in ("--given", ranker)]
    about: tuple[str | Path, ...] = ("--dataset", dataset, *SHORT)
    order = ("reproduce", *about, *given, "--only", "table1,table2,toy")
    assert ebrank(*order, "--fold", "1", "--out", "paper").exit_code == 0
    alone = {path: path.stat().st_mtime_ns for path in Path("paper", "trials").iterdir()}
    done = ebrank(*order, "--fold", "all", "--out", "paper", "--json")
    assert done.exit_code == 0, done.output
    found = {path: path.stat().st_mtime_ns for path in Path("paper", "trials").iterdir()}
    assert alone.items() <= found.items(), "a fold was run again"
    assert len(found) == 2 * len(alone)
    document = read_document(Path("paper"))
    assert "--fold all" in document.command
    (data,) = document.datasets
    assert (data.name, data.folds, data.test_queries) == ("mine, 2 folds", (1, 2), 12)
    both = ebrank("compare", "bm25", "cftopk", *about, "--fold", "all", "--json")
    compared = json.loads(both.stdout)
    ran = {run.ranker: run for run in data.runs}
    for ranker in compared["rankers"]:
        assert list(ran[ranker["ranker"]].warm) == ranker["warm_ndcg"]["trials"]
    assert "Folds 1 and 2, pooled" in Path("paper", "report.html").read_text()
    assert "mine, 2 folds" in Path("paper", "LEDGER.md").read_text()


def simulated(dataset: Path, fold: str, folder: str, *options: str) -> None:
    """Leave the run of a fold behind."""
    order = ("simulate", "--dataset", dataset, "--fold", fold, *SHORT, "--out", folder)
    done = ebrank(*order, "--ranker", "bm25", "--ranker", "oracle", *options)
    assert done.exit_code == 0, done.output


def figures(*words: str | Path) -> object:
    """Return what a comparison prints, without run times."""
    done = ebrank("compare", *words, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    for ranker in document["rankers"]:
        del ranker["seconds"]
    return document


def test_folders_of_folds_are_pooled_as_all_folds_are(dataset: Path) -> None:
    simulated(dataset, "2", "second")
    simulated(dataset, "1", "first")
    simulated(dataset, "all", "both")
    now = ("--dataset", dataset, "--fold", "all", *SHORT)
    expected = figures("bm25", "oracle", *now)
    assert figures("second", "first") == expected, "in the order of the folds"
    assert figures("both") == expected
    assert figures("first", "second", "both") == expected, "each ranker once"
    assert figures("first", "both/Fold2", "random", *now) == figures(
        "bm25", "oracle", "random", *now
    )


def refusal(*words: str | Path) -> str:
    done = ebrank("compare", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr


def test_folders_that_cannot_be_pooled_are_told_apart(dataset: Path) -> None:
    simulated(dataset, "1", "first")
    simulated(dataset, "2", "second", "--seed", "7", "--gamma", "0.9")
    said = refusal("first", "second")
    assert "first and second are folds 1 and 2, but differ in discount (0.995, 0.9), seed" in said
    assert "Run `ebrank simulate --fold 2` again with the options of first." in said
    simulated(dataset, "2", "other", "--ranker", "random")
    said = refusal("first", "other")
    assert said.startswith("error: first: random, which other has, was not run in fold 1.")
    assert "--fold 1 --ranker random --out first" in said
    now = ("random", "--dataset", dataset, *SHORT)
    assert "no folder holds fold 2 of" in refusal("first", *now, "--fold", "all")
    simulated(dataset, "2", "right")
    assert "the folders hold folds 1, 2; to run rankers" in refusal("first", "right", *now)
    text = (dataset / "Fold1" / "test.txt").read_text()
    (dataset / "Fold2" / "train.txt").write_text((dataset / "Fold1" / "vali.txt").read_text())
    (dataset / "Fold2" / "vali.txt").write_text((dataset / "Fold1" / "train.txt").read_text())
    (dataset / "Fold2" / "test.txt").write_text(text)
    simulated(dataset, "2", "again")
    said = refusal("first", "again")
    assert (
        "query c0 is a test query of first and of again, and would count twice. Leave one" in said
    )
    assert "differ in dataset (mine/Fold2, mine/Fold2 of other content)" in refusal(
        "right", "again"
    )


def test_who_reads_one_fold_says_so(dataset: Path) -> None:
    done = ebrank("data", "check", dataset, "--fold", "all")
    assert done.exit_code == 2
    assert "all works only with simulate, compare, tune and reproduce; choose one" in " ".join(
        done.stderr.split()
    )


def test_mistakes_are_told(dataset: Path) -> None:
    run = ("simulate", "--ranker", "bm25", *SHORT)
    done = ebrank(*run, "--dataset", dataset / "Fold1", "--fold", "all")
    assert done.exit_code == 2
    assert "has no folds to pool" in done.stderr
    done = ebrank(*run, "--dataset", dataset, "--fold", "0")
    assert "fold must be a whole number of 1 or more" in done.stderr
    done = ebrank(*run, "--dataset", dataset, "--per-query", "a.txt")
    assert "must end with .csv or .parquet" in done.stderr
    (dataset / "Fold2" / "test.txt").write_text((dataset / "Fold1" / "test.txt").read_text())
    (dataset / "Fold2" / "train.txt").write_text((dataset / "Fold1" / "train.txt").read_text())
    (dataset / "Fold2" / "vali.txt").write_text((dataset / "Fold1" / "vali.txt").read_text())
    for verb in (run, ("compare", "bm25", "random", *SHORT)):
        done = ebrank(*verb, "--dataset", dataset, "--fold", "all", "--out", "none")
        assert "is a test query of fold 1 and of fold 2, and would count twice" in done.stderr
        assert (done.stdout, Path("none").exists()) == ("", False), "a fold was run first"


class Stop:
    """A call that is interrupted, the first time or the second."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, *_: object) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def test_ctrl_c_in_a_later_fold_reports_all_folds(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = ("simulate", "--dataset", dataset, "--fold", "all", "--ranker", "bm25", *SHORT)
    values = ("--ranker", "ebrank:epsilon=1/2", "--ranker", "ebrank:epsilon=1")
    monkeypatch.setattr(parallel, "compile_for", Stop(at=2))
    done = ebrank(*order, *values, "--out", "runs")
    assert done.exit_code == 130
    assert "stopped: 4 of 10 trials finished, kept in runs; run the same" in done.stderr
    assert re.search(
        r"^Fold 1:\n +ranker .*\n.*\n +bm25 .*\n +ebrank:epsilon=1 ", done.stdout, re.M
    )
    assert "Fold 2:" not in done.stdout, "it has no finished trial"
    monkeypatch.setattr(parallel, "compile_for", Stop(at=2))
    done = ebrank(*order, "--json")
    first, second = json.loads(done.stdout)["folds"]
    assert (first["fold"], len(first["rankers"][0]["cold_ndcg"]["trials"])) == (1, 2)
    assert (second["fold"], second["rankers"][0]["cold_ndcg"]["trials"]) == (2, [])


def test_ctrl_c_between_folds_reports_the_finished_one(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "read_again", Stop(at=1))
    about = ("--dataset", dataset, "--fold", "all", *SHORT)
    done = ebrank("simulate", *about, "--ranker", "bm25")
    assert done.exit_code == 130
    assert "Fold 1:" in done.stdout
    assert "stopped: 2 of 4 trials finished\n" in done.stderr
    monkeypatch.setattr(lab, "read_again", Stop(at=1))
    done = ebrank("compare", *about, "bm25", "random")
    assert done.exit_code == 130
    assert "stopped: 4 of 8 trials finished\n" in done.stderr


def test_tuning_that_was_stopped_counts_all_folds(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "compile_for", Stop(at=2))
    order = ("tune", "--dataset", dataset, "--fold", "all", "--ranker", "ebrank", *SHORT)
    done = ebrank(*order, "--param", "epsilon", "--grid", "0,5", "--out", "tuned")
    assert done.exit_code == 130
    assert "stopped: 4 of 8 trials finished, kept in tuned; run the same" in done.stderr


def test_what_went_wrong_in_a_later_fold_costs_no_results(dataset: Path) -> None:
    Path("trec", "Fold2", "qrels.txt").mkdir(parents=True)
    order = ("simulate", "--dataset", dataset, "--fold", "all", "--ranker", "bm25", *SHORT)
    done = ebrank(*order, "--trec", "trec")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("error: trec/Fold2/qrels.txt: is a directory")
    assert "Fold 1:" in done.stdout
    assert "Fold 2:" in done.stdout


def test_files_that_cannot_be_written_are_told_before_anything_runs(dataset: Path) -> None:
    Path("file").write_text("")
    for target in (("--trec", "file/trec"), ("--per-query", "file/queries.csv")):
        done = ebrank("simulate", "--dataset", dataset, "--ranker", "bm25", *SHORT, *target)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("error: file")
