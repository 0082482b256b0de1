"""`ebrank compare`: rankers, folders, both, and what is in the way of comparing them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.lab.simulation.storage import VERSION, read_trial, write_trial
from tests.cli.commands import (
    SHORT,
    TINY,
    answered,
    good,
    refused,
    simulated,
    trials,
    without_seconds,
)


def figures(*words: str) -> dict[str, Any]:
    """Return what a comparison prints for scripts, but for run times."""
    return without_seconds(answered("compare", *words))


def edit(folder: str, change: Callable[[dict[str, Any]], object], which: str = "*") -> None:
    """Change what trials say about themselves."""
    for path in Path(folder).glob(f"{which}.npz"):
        trial, header = read_trial(path)
        change(header)
        write_trial(path, trial, header, np.array(["q"]))


def test_a_table_for_people() -> None:
    done = good("compare", "bm25", "oracle", "ebrank:epsilon=5,estimator=exposure", *SHORT)
    lines = done.stdout.splitlines()
    assert lines[0] == "Comparison on mq2007-like×0.01"
    assert lines[1].split() == ["ranker", "Cold-NDCG", "Warm-NDCG", "Cum-NDCG"]
    assert ["ranker", "Run-NDCG"] in [line.split() for line in lines], "what does not fit beside"
    cells = lines[4].split()
    assert cells[0] == "oracle"
    assert cells[2] == "a", "the letter of the best"
    assert lines[4].count(" ± ") == 3
    assert "share a letter" in done.stdout
    assert max(map(len, lines)) <= 80


@pytest.mark.slow
def test_measures_that_begin_late_or_never_are_drawn_and_printed() -> None:
    late = (*TINY, "--sessions", "60", "--updates", "20", "--trials", "2", "--seed", "0")
    never = (*TINY, "--sessions", "1", "--updates", "1", "--trials", "1", "--seed", "0")
    for name, options in (("late", late), ("never", never)):
        done = good("compare", "bm25", "oracle", *options, "--out", name)
        assert Path(name, "compare.svg").exists()
        assert ("set more --sessions" in done.stderr) == (name == "never")
    document = answered("compare", "bm25", "oracle", *never)
    assert [one["letters"]["run_ndcg"] for one in document["rankers"]] == ["", ""]


def test_rankers_are_called_as_the_user_calls_them() -> None:
    typed = ("bm25", "ebrank:epsilon=20", "ebrank:epsilon=7,beta=5")
    document = answered("compare", *typed, "ebrank:epsilon=20.0", *SHORT)
    assert tuple(one["ranker"] for one in document["rankers"]) == typed
    assert {pair[side] for pair in document["pairs"] for side in "ab"} == set(typed)
    simulated("folder", "bm25", "ebrank")
    both = answered("compare", "folder", typed[1], *SHORT)
    assert [one["ranker"] for one in both["rankers"]] == ["bm25", typed[1]]


OWN_RANKER = """
from dataclasses import dataclass
from ebrank.lab.rankers.base import Ranker, Refit, fixed_model

@dataclass(frozen=True)
class Backwards(Ranker):
    name = "backwards"
    help = "Sort by BM25, worst first."
    settings = ("none",)

    def learner(self, trial):
        return Refit(lambda: fixed_model(-trial.dataset.baseline.astype(float)))
"""


@pytest.mark.slow
def test_the_same_ranker_before_and_after_a_change_is_two(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.py").write_text(OWN_RANKER)
    monkeypatch.syspath_prepend(".")
    simulated("before", "mine:Backwards")
    shutil.copytree("before", "same")
    Path("mine.py").write_text(OWN_RANKER.replace("(-trial", "(trial"))
    del sys.modules["mine"]
    simulated("after", "mine:Backwards")
    document = answered("compare", "before", "after", "same")
    before, after = document["rankers"]
    assert before["ranker"] == "mine:Backwards (before)", "the first folder of the same code"
    assert after["ranker"] == "mine:Backwards (after)"
    assert after["cum_ndcg"]["mean"] > before["cum_ndcg"]["mean"]
    assert {(pair["a"], pair["b"]) for pair in document["pairs"]} == {
        (before["ranker"], after["ranker"])
    }
    lines = good("compare", "before", "after").stdout.splitlines()
    assert [" ".join(line.split()[:2]) for line in lines[3:5]] == [
        "mine:Backwards (before)",
        "mine:Backwards (after)",
    ]


def test_rankers_and_folders_and_both_give_the_same() -> None:
    fresh = figures("bm25", "ebrank", *SHORT)
    simulated("one", "bm25")
    simulated("two", "ebrank")
    assert figures("one", "two") == fresh
    assert figures("one", "ebrank", *SHORT) == fresh
    assert figures("bm25", "two", *SHORT) == fresh


def test_a_folder_may_hold_several_and_each_ranker_counts_once() -> None:
    simulated("all", "bm25", "ebrank", "random")
    document = answered("compare", "all", "all", "random")
    assert [one["ranker"] for one in document["rankers"]] == ["bm25", "ebrank", "random"]
    assert len(document["pairs"]) == 12


def test_a_ranker_is_a_ranker_even_if_a_folder_has_its_name() -> None:
    Path("bm25").mkdir()
    good("compare", "bm25", "random", *SHORT)


@pytest.mark.slow
def test_out_keeps_the_trials_and_the_picture() -> None:
    words = ("compare", "bm25", "ebrank", *SHORT, "--out", "kept", "--json")
    first = good(*words).stdout
    kept = trials(Path("kept"))
    assert len(kept) == 4
    again = good(*words)
    assert again.stdout == first
    assert trials(Path("kept")) == kept
    assert "Picture: kept/compare.svg" in again.stderr
    assert "ebrank" in Path("kept/compare.svg").read_text(encoding="utf-8")
    assert figures("kept") == without_seconds(json.loads(first))


def test_without_the_extra_there_is_a_table_and_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = good("compare", "bm25", "random", *SHORT, "--out", "kept")
    assert "Comparison on" in done.stdout
    assert "\nwarning: no picture: matplotlib is needed to draw figures and" in done.stderr
    assert done.stderr.endswith("run: pip install 'ebrank[report]'\n")


# --- what cannot be compared ---------------------------------------------------------------------


CHANGES = [
    ("--eta", "0.5", "entering_probability (1.0, 0.5)"),
    ("--sessions", "100", "sessions (80, 100)"),
    ("--updates", "5", "updates (4, 5)"),
    ("--initial", "4-7", ""),
    ("--users", "dcm:setting=navigational", "users (pbm, dcm:setting=navigational)"),
    ("--noise", "0.2", ""),
    ("--click-rate", "0.5", "click_rate (1.0, 0.5)"),
    ("--examination", "1,0.5,0.25", ""),
    ("--measure-at", "3,10", ""),
    ("--seed", "2", "seed (1, 2)"),
    ("--trials", "3", "trials (2, 3)"),
    ("--scale", "0.02", "dataset (mq2007-like×0.01 "),
    ("--interactions", "0.5", "dataset (mq2007-like×0.01 "),
]
"""Options of every type, a value that is not the usual one, and the difference that it makes."""


@pytest.mark.parametrize(("option", "value", "reason"), CHANGES)
def test_a_run_is_compared_with_its_like_alone(option: str, value: str, reason: str) -> None:
    words = (*SHORT, option, value)
    simulated("usual", "bm25")
    simulated("unusual", "bm25", options=words)
    good("compare", "unusual", "random", *words)
    for runs in (("usual", "unusual"), ("usual", "random", *words)):
        assert f"they differ in {reason}" in refused("compare", *runs)


def test_a_dataset_counts_by_its_content_whatever_its_name() -> None:
    simulated("one", "bm25")
    expected = figures("one", "ebrank", *SHORT)
    edit("one", lambda header: header.update(name="elsewhere/Fold1"))
    assert figures("one", "ebrank", *SHORT)["pairs"] == expected["pairs"]


def test_another_version_of_the_code_is_refused() -> None:
    simulated("one", "bm25")
    edit("one", lambda header: header["conditions"].update({VERSION: "0.1 01234567"}))
    said = refused("compare", "one", "ebrank", *SHORT)
    assert f"they differ in {VERSION} (0.1 01234567, " in said


@pytest.mark.parametrize(
    ("runs", "idle"),
    [
        (("all", "--dataset", "mslr10k-like", "--trials", "3"), "--dataset, --trials"),
        (("all", "--users", "cascade", "--gamma", "0.5"), "--users, --gamma"),
        (("all", "--jobs", "2", "--out", "new"), "--jobs"),
        (("all", "--config", "study.toml"), "--eta"),
        (("all", "bm25", "--seed", "1"), "--seed"),
    ],
)
def test_options_about_running_are_refused_if_nothing_runs(
    runs: tuple[str, ...], idle: str
) -> None:
    simulated("all", "bm25", "random")
    Path("study.toml").write_text("eta = 0.5\n")
    said = refused("compare", *runs)
    assert f"so {idle} would have no effect. Leave such options out, or name" in said
    assert not Path("new").exists()


def test_a_ranker_that_a_folder_holds_must_have_met_the_users_that_options_describe() -> None:
    simulated("all", "bm25", "random")
    assert figures("all", "bm25", *SHORT) == figures("all")
    said = refused("compare", "all", "bm25", *SHORT, "--seed", "2")
    assert "they differ in seed (1, 2)" in said


def test_a_folder_with_runs_of_different_users_is_refused() -> None:
    simulated("one", "bm25")
    simulated("one", "random", options=(*SHORT, "--seed", "2"))
    assert "one and one did not meet the same users: they differ in seed" in refused(
        "compare", "one"
    )
    simulated("two", "bm25")
    simulated("two", "random", options=(*SHORT, "--trials", "3"))
    assert "they differ in trials (2, 3)" in refused("compare", "two")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (Path.unlink, "one: trial 0 of random is missing. Run `ebrank simulate`"),
        (lambda path: path.write_bytes(b"PK"), "one/random_trial0_"),
    ],
)
def test_a_lost_or_damaged_trial_is_named(damage: Callable[[Path], object], problem: str) -> None:
    simulated("one", "bm25", "random")
    damage(next(Path("one").glob("random_trial0_*.npz")))
    assert refused("compare", "one").startswith(f"error: {problem}")
    Path("none").mkdir()
    assert "none: no trials in this folder" in refused("compare", "none", "bm25", *SHORT)
