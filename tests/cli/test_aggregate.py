"""`ebrank aggregate`, and what can be done with its file."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.cli.comparing import ebrank


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log of users who look at the third rank half as often as at the first."""
    monkeypatch.chdir(tmp_path)
    rng, lines = random.Random(5), ["list,search,item,type,position"]
    for number in range(3000):
        query = f"q{number % 24}"
        items = rng.sample(range(6), 3)
        for rank, item in enumerate(items, start=1):
            lines.append(f"{number},{query},i{item},view,{rank}")
            if rng.random() < (0.1 + 0.15 * item) * (1.0, 0.8, 0.5)[rank - 1]:
                lines.append(f"{number},{query},i{item},click,")
        lines.append(f"{number},{query},,scroll,")
    (tmp_path / "log.csv").write_text("\n".join(lines))
    (tmp_path / "items.csv").write_text("item,x\n" + "".join(f"i{i},{i}\n" for i in range(6)))
    return tmp_path


MAPS = ("--map", "ranking=list", "--map", "query=search", "--map", "rank=position")
ARGUMENTS = ("aggregate", "log.csv", *MAPS, "--impression", "view", "--out", "evidence.parquet")


@pytest.mark.slow
def test_a_log_starts_a_store_and_tells_how_far_down_users_look(folder: Path) -> None:
    done = ebrank(*ARGUMENTS)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("evidence.parquet: 9,000 impressions (")
    assert "ignored event types: scroll (3,000)" in done.stderr
    done = ebrank("import", "evidence.parquet", "store", "--features", "items.csv", "--json")
    assert json.loads(done.stdout) == {"store": "store", "rows": {"queries": 24, "items": 144}}
    assert ebrank("replay", "store").stdout.startswith("equal: 144 items of 24 queries, 0 events")
    of_file = ebrank("examine", "evidence.parquet", "--features", "items.csv", "--json")
    of_store = ebrank("examine", "store", "--json")
    assert of_file.exit_code == of_store.exit_code == 0, of_file.output + of_store.output
    ranks = json.loads(of_file.stdout)["ranks"]
    assert ranks == json.loads(of_store.stdout)["ranks"]
    assert [rank["first"] for rank in ranks] == [1, 2, 3]
    assert ranks[2]["learned"]
    assert abs(ranks[2]["probability"] - 0.5) < 3 * ranks[2]["error"]
    assert ebrank("examine", "evidence.parquet").exit_code == 0


def test_json(folder: Path) -> None:
    report = json.loads(ebrank(*ARGUMENTS, "--json").stdout)
    assert (report["impressions"], report["ignored"]) == (9000, {"scroll": 3000})
    assert report["out"] == "evidence.parquet"


def test_import_without_features_says_what_follows(folder: Path) -> None:
    ebrank(*ARGUMENTS)
    done = ebrank("import", "evidence.parquet", "store")
    assert (done.exit_code, "inactive until you put them" in done.stderr) == (0, True)
    (folder / "some.csv").write_text("item,x\ni0,1\n")
    done = ebrank("import", "evidence.parquet", "other", "--features", "some.csv")
    assert "120 items have no features in some.csv and were left out" in done.stderr
    told = " ".join(ebrank("import", "--help").stdout.split())
    assert "With --features, items that the table lacks are left out" in told
    (folder / "none.csv").write_text("item,x\nI0,1\n")
    done = ebrank("import", "evidence.parquet", "none", "--features", "none.csv")
    assert (done.exit_code, "exactly as in the log" in done.stderr) == (2, True)
    assert not (folder / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("aggregate", "log.csv", "--out", "e.parquet"), "no column '"),
        ((*ARGUMENTS, "--memory", "much"), "'much' is not a size"),
        (("aggregate", "none.csv", "--out", "e.parquet"), "file not found"),
        ((*ARGUMENTS, "--behavior", "click=2"), "must be at most 1"),
        ((*ARGUMENTS, "--impressions", "served"), "need the lists"),
        (("import", "log.csv", "store", "--features", "items.csv"), "work only with evidence"),
        (("examine", "store", "--features", "items.csv"), "works only with evidence"),
    ],
)
def test_mistakes_are_explained(folder: Path, arguments: tuple[str, ...], why: str) -> None:
    done = ebrank(*arguments)
    assert (done.exit_code, why in done.output, "Traceback" in done.output) == (2, True, False)
