"""`ebrank compare`: rankers, folders, both; what is refused, and what a stop leaves behind."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.comparing import SHORT, TINY, ebrank, simulated

PATIENCE = 120


pytestmark = pytest.mark.usefixtures("narrow")


def printed_json(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def figures(document: dict[str, Any]) -> Any:  # noqa: ANN401 (JSON)
    """Return all but run times."""
    for ranker in document["rankers"]:
        del ranker["seconds"]
    return document


def test_a_table_for_people() -> None:
    done = ebrank("compare", "bm25", "oracle", "ebrank:epsilon=5,estimator=exposure", *SHORT)
    assert done.exit_code == 0, done.output
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
        done = ebrank("compare", "bm25", "oracle", *options, "--out", name)
        assert done.exit_code == 0, done.output
        assert Path(name, "compare.svg").exists()
        assert ("set more --sessions" in done.stderr) == (name == "never")
    document = printed_json(ebrank("compare", "bm25", "oracle", *never, "--json"))
    assert [one["letters"]["run_ndcg"] for one in document["rankers"]] == ["", ""]


def test_rankers_are_called_as_the_user_calls_them() -> None:
    typed = ("bm25", "ebrank:epsilon=20", "ebrank:epsilon=7,beta=5")
    document = printed_json(ebrank("compare", *typed, "ebrank:epsilon=20.0", *SHORT, "--json"))
    assert tuple(one["ranker"] for one in document["rankers"]) == typed
    assert {pair[side] for pair in document["pairs"] for side in "ab"} == set(typed)
    simulated("folder", "bm25", "ebrank")
    both = printed_json(ebrank("compare", "folder", typed[1], *SHORT, "--json"))
    assert [one["ranker"] for one in both["rankers"]] == ["bm25", typed[1]]


def test_long_texts_are_broken_between_parameters() -> None:
    long = "ebrank:epsilon=5.5,estimator=exposure,min_impressions=12"
    lines = ebrank("compare", "bm25", long, *SHORT).stdout.splitlines()
    assert [line.split()[0] for line in lines[4:7]] == [
        "ebrank:epsilon=5.5,",
        "estimator=exposure,",
        "min_impressions=12",
    ]
    assert max(map(len, lines)) <= 80


OWN_RANKER = """
from dataclasses import dataclass
from ebrank.rankers.base import Ranker, Refit
from ebrank.rankers.bm25 import fixed_model

@dataclass(frozen=True)
class Backwards(Ranker):
    name = "backwards"
    help = "Sort by BM25, worst first."
    settings = ("none",)

    def learner(self, trial):
        return Refit(lambda: fixed_model(-trial.dataset.baseline.astype(float)))
"""


@pytest.mark.slow
def test_a_researchers_own_ranker() -> None:
    Path("mine.py").write_text(OWN_RANKER)
    done = subprocess.run(
        [sys.executable, "-m", "ebrank", "compare", "bm25", "mine:Backwards", *SHORT, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    bm25, mine = json.loads(done.stdout)["rankers"]
    assert (bm25["ranker"], mine["ranker"]) == ("bm25", "mine:Backwards")
    assert bm25["cum_ndcg"]["mean"] > mine["cum_ndcg"]["mean"]


def test_an_own_ranker_that_fails_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("failing.py").write_text(OWN_RANKER.replace("-trial.dataset", "-trial.data"))
    monkeypatch.syspath_prepend(".")
    done = ebrank("compare", "bm25", "failing:Backwards", *SHORT)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[1:] == [
        "error: failing:Backwards failed while learning: "
        "AttributeError: 'Trial' object has no attribute 'data'"
    ]


def in_a_process(*words: str) -> None:
    """Run ebrank where no module is imported yet."""
    command = [sys.executable, "-m", "ebrank", *words]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)


@pytest.mark.slow
def test_the_same_ranker_before_and_after_a_change_is_two(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.py").write_text(OWN_RANKER)
    monkeypatch.syspath_prepend(".")
    simulated("before", "mine:Backwards")
    shutil.copytree("before", "same")
    Path("mine.py").write_text(OWN_RANKER.replace("(-trial", "(trial"))
    in_a_process("simulate", "--ranker", "mine:Backwards", *SHORT, "--out", "after")
    document = printed_json(ebrank("compare", "before", "after", "same", "--json"))
    before, after = document["rankers"]
    assert before["ranker"] == "mine:Backwards (before)", "the first folder of the same code"
    assert after["ranker"] == "mine:Backwards (after)"
    assert after["cum_ndcg"]["mean"] > before["cum_ndcg"]["mean"]
    assert {(pair["a"], pair["b"]) for pair in document["pairs"]} == {
        (before["ranker"], after["ranker"])
    }
    lines = ebrank("compare", "before", "after").stdout.splitlines()
    assert [" ".join(line.split()[:2]) for line in lines[3:5]] == [
        "mine:Backwards (before)",
        "mine:Backwards (after)",
    ]


def test_rankers_and_folders_and_both_give_the_same() -> None:
    fresh = figures(printed_json(ebrank("compare", "bm25", "ebrank", *SHORT, "--json")))
    simulated("one", "bm25")
    simulated("two", "ebrank")
    assert figures(printed_json(ebrank("compare", "one", "two", "--json"))) == fresh
    assert figures(printed_json(ebrank("compare", "one", "ebrank", *SHORT, "--json"))) == fresh
    assert figures(printed_json(ebrank("compare", "bm25", "two", *SHORT, "--json"))) == fresh


def test_a_folder_may_hold_several_and_each_ranker_counts_once() -> None:
    simulated("all", "bm25", "ebrank", "random")
    document = printed_json(ebrank("compare", "all", "all", "random", "--json"))
    assert [one["ranker"] for one in document["rankers"]] == ["bm25", "ebrank", "random"]
    assert len(document["pairs"]) == 12


def test_a_ranker_is_a_ranker_even_if_a_folder_has_its_name() -> None:
    Path("bm25").mkdir()
    assert ebrank("compare", "bm25", "random", *SHORT).exit_code == 0


@pytest.mark.slow
def test_out_keeps_the_trials_and_the_picture() -> None:
    from PIL import Image

    first = ebrank("compare", "bm25", "ebrank", *SHORT, "--out", "kept", "--json")
    kept = {path.name: path.stat().st_mtime_ns for path in Path("kept").glob("*.npz")}
    assert len(kept) == 4
    again = ebrank("compare", "bm25", "ebrank", *SHORT, "--out", "kept", "--json")
    assert printed_json(again) == printed_json(first)
    assert {path.name: path.stat().st_mtime_ns for path in Path("kept").glob("*.npz")} == kept
    assert "Picture: kept/compare.svg, .png" in again.stderr
    assert "ebrank" in Path("kept/compare.svg").read_text(encoding="utf-8")
    with Image.open("kept/compare.png") as picture:
        assert min(picture.size) > 300
    assert figures(printed_json(ebrank("compare", "kept", "--json"))) == figures(
        printed_json(first)
    )


def test_without_the_extra_there_is_a_table_and_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = ebrank("compare", "bm25", "random", *SHORT, "--out", "kept")
    assert done.exit_code == 0, done.output
    assert "Comparison on" in done.stdout
    assert "\nwarning: no picture: matplotlib is needed to draw figures and" in done.stderr
    assert done.stderr.endswith("run: pip install 'ebrank[report]'\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--seed", "2"), "seed (1, 2)"),
        (("--trials", "3"), "trials (2, 3)"),
        (("--sessions", "90"), "sessions (80, 90)"),
        (("--eta", "0.5"), "entering_probability (1.0, 0.5)"),
        (("--updates", "5"), "updates (4, 5)"),
        (("--scale", "0.02"), "dataset (mq2007-like×0.01, mq2007-like×0.02)"),
        (
            ("--interactions", "0.5"),
            "dataset (mq2007-like×0.01, mq2007-like×0.01-interactions0.5)",
        ),
    ],
)
def test_other_users_are_refused_with_the_reason(options: tuple[str, ...], reason: str) -> None:
    simulated("one", "bm25")
    simulated("two", "ebrank", options=(*SHORT, *options))
    for runs in (("one", "two"), ("one", "ebrank", *SHORT, *options)):
        done = ebrank("compare", *runs)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"they differ in {reason}" in done.stderr


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
    done = ebrank("compare", *runs)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"so {idle} would have no effect. Leave such options out, or name" in done.stderr
    assert not Path("new").exists()


def test_a_ranker_that_a_folder_holds_must_have_met_the_users_that_options_describe() -> None:
    simulated("all", "bm25", "random")
    stored = printed_json(ebrank("compare", "all", "--json"))
    assert printed_json(ebrank("compare", "all", "bm25", *SHORT, "--json")) == stored
    done = ebrank("compare", "all", "bm25", *SHORT, "--seed", "2")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "they differ in seed (1, 2)" in done.stderr


@pytest.mark.parametrize(
    ("runs", "problem"),
    [
        (("bm25", "ebrank"), "to run bm25, ebrank, set --dataset; only folders bring their own"),
        (("bm25", *TINY), "a comparison needs at least two rankers"),
        (("bm25", "bm25", *TINY), "a comparison needs at least two rankers"),
        (("nowhere", "bm25", *TINY), "folder not found: nowhere; and no ranker is called"),
        (("ebrank:epsilon=x", "bm25", *TINY), "epsilon takes a number"),
    ],
)
def test_mistakes_are_one_line(runs: tuple[str, ...], problem: str) -> None:
    done = ebrank("compare", *runs)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert problem in done.stderr


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    words = ("bm25", "ebrank", *SHORT, "--trials", "400", "--out", "kept")
    with subprocess.Popen(
        [sys.executable, "-m", "ebrank", "compare", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + PATIENCE
        while len(list(tmp_path.glob("kept/*.npz"))) < 4:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "nothing happened"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stdout) == (130, "")
    assert "of 800 trials finished, kept in kept; run the same command to continue" in stderr
    assert "Traceback" not in stderr
