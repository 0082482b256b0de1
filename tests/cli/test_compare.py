"""`ebrank compare`: the table, the picture, and what is kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import (
    SHORT,
    TINY,
    answered,
    good,
    simulated,
    trials,
    without_seconds,
)


def figures(*words: str) -> dict[str, Any]:
    """Return what a comparison prints for scripts, but for run times."""
    return without_seconds(answered("compare", *words))


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


def test_trials_of_an_earlier_run_are_not_run_again() -> None:
    fresh = figures("bm25", "ebrank", *SHORT)
    simulated("earlier", "bm25", "random")
    kept = trials(Path("earlier"))
    assert figures("bm25", "ebrank", *SHORT, "--out", "earlier") == fresh
    assert kept.items() <= trials(Path("earlier")).items()
    assert len(trials(Path("earlier"))) == 6


def test_a_ranker_is_a_ranker_even_if_a_folder_has_its_name() -> None:
    Path("bm25").mkdir()
    good("compare", "bm25", "random", *SHORT)


@pytest.mark.slow
def test_out_keeps_the_trials_and_the_picture() -> None:
    from PIL import Image

    words = ("compare", "bm25", "ebrank", *SHORT, "--out", "kept", "--json")
    first = good(*words).stdout
    kept = trials(Path("kept"))
    assert len(kept) == 4
    again = good(*words)
    assert again.stdout == first
    assert trials(Path("kept")) == kept
    assert "Picture: kept/compare.svg, .png" in again.stderr
    assert "ebrank" in Path("kept/compare.svg").read_text(encoding="utf-8")
    with Image.open("kept/compare.png") as picture:
        assert min(picture.size) > 300


def test_without_the_extra_there_is_a_table_and_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = good("compare", "bm25", "random", *SHORT, "--out", "kept")
    assert "Comparison on" in done.stdout
    assert "\nwarning: no picture: matplotlib is needed to draw figures and" in done.stderr
    assert done.stderr.endswith("run: pip install 'ebrank[report]'\n")
