"""`--fold all`, and the files of single queries, by the commands."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.comparing import ebrank

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


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (("tune", "--ranker", "ebrank"), "all works only with simulate and compare"),
        (("reproduce",), "all works only with simulate and compare"),
    ],
)
def test_who_cannot_pool_says_so(dataset: Path, order: tuple[str, ...], message: str) -> None:
    done = ebrank(*order, "--dataset", dataset, "--fold", "all")
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_mistakes_are_told(dataset: Path) -> None:
    run = ("simulate", "--ranker", "bm25", *SHORT)
    done = ebrank(*run, "--dataset", dataset / "Fold1", "--fold", "all")
    assert done.exit_code == 2
    assert "has no folds to pool" in done.stderr
    done = ebrank(*run, "--dataset", dataset, "--fold", "0")
    assert "'0' is not a fold number from 1 up" in done.stderr
    done = ebrank(*run, "--dataset", dataset, "--per-query", "a.txt")
    assert "must end with .csv or .parquet" in done.stderr
    (dataset / "Fold2" / "test.txt").write_text((dataset / "Fold1" / "test.txt").read_text())
    (dataset / "Fold2" / "train.txt").write_text((dataset / "Fold1" / "train.txt").read_text())
    (dataset / "Fold2" / "vali.txt").write_text((dataset / "Fold1" / "vali.txt").read_text())
    done = ebrank(*run, "--dataset", dataset, "--fold", "all")
    assert "is a test query of two folds, and would count twice" in done.stderr
