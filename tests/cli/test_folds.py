"""`--fold all`, and the files of single queries, by the commands."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from ebrank.cli import lab
from ebrank.lab.simulation import parallel
from ebrank.paper.document import read_document
from tests.cli.commands import answered, ebrank, good, refused, trials, without_seconds

pytestmark = pytest.mark.slow

SHORT = ("--sessions", "60", "--updates", "2", "--trials", "2")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Two folds with the queries of each split in turn."""
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
    whole = ("simulate", "--dataset", dataset, *rankers, *SHORT)
    files = ("--per-query", "queries.csv", "--trec", "trec", "--out", "runs")
    pooled = answered(*whole, "--fold", "all", *files)["rankers"]
    folds = [answered(*whole, "--fold", fold)["rankers"] for fold in ("1", "2")]
    for both, one, two in zip(pooled, *folds, strict=True):
        for metric in ("cold_ndcg", "warm_ndcg", "cum_ndcg", "run_ndcg"):
            expected = (one[metric]["mean"] + two[metric]["mean"]) / 2  # folds of one size
            assert both[metric]["mean"] == pytest.approx(expected)
        assert both["sessions"] == 120
    said = good(*whole, "--fold", "all")
    assert "fold 1: 18 queries" in said.stdout
    assert "mine, all folds, 2 trials" in said.stderr
    with Path("queries.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["fold"], row["query"][0]) for row in rows} == {("1", "c"), ("2", "a")}
    assert len(rows) == 2 * 2 * (6 + 6)
    assert Path("trec", "Fold2", "qrels.txt").read_text().startswith("a0 0 a0.1 0\n")
    assert len(trials(Path("runs", "Fold1"))) == 4
    with np.load(next(Path("runs", "Fold1").glob("*.npz"))) as trial:
        assert trial["query_ids"].tolist() == [f"c{query}" for query in range(6)]


def test_a_reproduction_pools_folds(dataset: Path) -> None:
    tuned = ("ebrank:epsilon=30", "ebrank:epsilon=20,estimator=exposure", "ucbrank:epsilon=0.01")
    given = [word for ranker in tuned for word in ("--given", ranker)]
    about: tuple[str | Path, ...] = ("--dataset", dataset, *SHORT)
    order = ("reproduce", *about, *given, "--only", "table1,table2,toy", "--out", "paper")
    good(*order, "--fold", "1")
    alone = trials(Path("paper", "trials"))
    good(*order, "--fold", "all", "--json")
    both = trials(Path("paper", "trials"))
    assert alone.items() <= both.items(), "a fold was run again"
    assert len(both) == 2 * len(alone)
    document = read_document(Path("paper"))
    assert "--fold all" in document.command
    assert (document.name, document.folds) == ("mine, 2 folds", (1, 2))
    assert document.test_queries == 12
    ran = {run["ranker"]: run for run in document.runs}
    for ranker in answered("compare", "bm25", "cftopk", *about, "--fold", "all")["rankers"]:
        assert ran[ranker["ranker"]]["warm_ndcg"] == ranker["warm_ndcg"]
    assert "folds 1 and 2, pooled" in Path("paper", "report.html").read_text()
    assert "mine, 2 folds" in Path("paper", "LEDGER.md").read_text()


def test_folders_hold_one_fold_each(dataset: Path) -> None:
    for fold in ("1", "all"):
        out = ("--out", f"fold-{fold}")
        good("simulate", "--dataset", dataset, "--fold", fold, *SHORT, *out, "--ranker", "bm25")
    now = ("random", "--dataset", dataset, *SHORT)
    expected = without_seconds(answered("compare", "bm25", *now))
    assert without_seconds(answered("compare", "fold-all/Fold1", *now)) == expected
    assert "fold-all: no trials in this folder" in refused("compare", "fold-all", "fold-1")
    assert "folders are compared one fold at a time" in refused(
        "compare", "fold-1", *now, "--fold", "all"
    )


def copy_splits(dataset: Path, **sources: str) -> None:
    """Replace splits of the second fold by those of the first."""
    for split, source in sources.items():
        text = (dataset / "Fold1" / f"{source}.txt").read_text()
        (dataset / "Fold2" / f"{split}.txt").write_text(text)


def test_folds_that_cannot_be_pooled_are_refused_before_anything_runs(dataset: Path) -> None:
    run = ("simulate", "--ranker", "bm25", *SHORT)
    said = refused(*run, "--dataset", dataset / "Fold1", "--fold", "all")
    assert "has no folds to pool" in said
    copy_splits(dataset, train="train", vali="vali", test="test")
    for verb in (run, ("compare", "bm25", "random", *SHORT)):
        said = refused(*verb, "--dataset", dataset, "--fold", "all", "--out", "none")
        assert "is a test query of fold 1 and of fold 2, and would count twice" in said
        assert not Path("none").exists(), "a fold was run first"


class Stop:
    """A call that is interrupted, the first time or the second."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, *_: object) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


SIMULATE = ("simulate", "--ranker", "bm25")
COMPARE = ("compare", "bm25", "random")


@pytest.mark.parametrize(
    ("words", "between", "said"),
    [
        (SIMULATE, False, "2 of 4"),
        (COMPARE, False, "4 of 8"),
        (SIMULATE, True, "2 of 4"),
        (COMPARE, True, "4 of 8"),
    ],
)
def test_ctrl_c_in_a_later_fold_or_before_it_keeps_and_counts_all_folds(
    words: tuple[str, ...],
    between: bool,
    said: str,
    dataset: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = [*words, "--dataset", str(dataset), "--fold", "all", *SHORT, "--out", "kept"]
    with monkeypatch.context() as patched:
        if between:
            patched.setattr(lab, "read_again", Stop(at=1))
        else:
            patched.setattr(parallel, "compile_for", Stop(at=2))
        done = ebrank(*order)
    assert done.exit_code == 130
    assert f"stopped: {said} trials finished, kept in kept; run the same command" in done.stderr
    kept = trials(Path("kept", "Fold1"))
    good(*order)
    assert trials(Path("kept", "Fold1")) == kept
