"""Every verb that reads a dataset says what it assumes about columns, and takes another word."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root

pytestmark = pytest.mark.usefixtures("narrow")

SHORT = ("--sessions", "30", "--updates", "2", "--trials", "1")
VERBS = {
    "simulate": ("simulate", "--ranker", "bm25", *SHORT, "--dataset"),
    "tune": (
        "tune",
        "--ranker",
        "ebrank",
        "--param",
        "epsilon",
        "--grid",
        "0",
        *SHORT,
        "--dataset",
    ),
    "compare": ("compare", "bm25", "random", *SHORT, "--dataset"),
    "reproduce": ("reproduce", "--only", "table1", *SHORT, "--out", "out", "--dataset"),
}
OWN = ("--baseline-feature", "none", "--drop-features", "none", "--max-label", "3")
NOTE = "note: mine has 136 features, like MSLR-WEB. So feature 110 is the baseline (BM25), "


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, [*map(str, arguments)], prog_name="ebrank")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two queries of eight items a split, with 136 features."""
    rng = np.random.default_rng(2)
    (tmp_path / "mine").mkdir()
    for split in ("train", "vali", "test"):
        rows = [
            f"{item % 3} qid:{split}{query} "
            + " ".join(f"{i}:{value:.3f}" for i, value in enumerate(rng.random(136), 1))
            for query in range(2)
            for item in range(8)
        ]
        (tmp_path / "mine" / f"{split}.txt").write_text("\n".join(rows))
    return tmp_path / "mine"


@pytest.mark.parametrize("verb", VERBS)
def test_assumptions_are_reported_and_can_be_changed(verb: str, folder: Path) -> None:
    done = run(*VERBS[verb], folder)
    assert done.exit_code == 0, done.output
    assert done.stderr.count(NOTE) == 1
    assert "note:" not in done.stdout


def test_choices_reach_the_dataset(folder: Path, tmp_path: Path) -> None:
    for out, options, features in (("a", (), 133), ("b", OWN, 136)):
        done = run(*VERBS["simulate"], folder, *options, "--out", out)
        assert done.exit_code == 0, done.output
        assert ("features" in done.stderr) == (not options)
        document = json.loads((tmp_path / out / "results.json").read_text())
        assert document["dataset"]["features"] == features


def test_choices_are_part_of_the_commands_that_are_printed(folder: Path, tmp_path: Path) -> None:
    done = run(*VERBS["tune"], folder, *OWN)
    assert " ".join(OWN) in done.stdout.splitlines()[-1]
    run(*VERBS["reproduce"], folder, *OWN)
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert " ".join(OWN) in document["command"]
