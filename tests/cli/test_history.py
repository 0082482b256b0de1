"""`ebrank aggregate`, `import`, `examine` and `whatif`: what users did before, and might do."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import numpy as np
import pytest

from ebrank.addons.logs.importing import Imported
from ebrank.cli.history import imported_lines
from ebrank.service.api import EventIn, ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.settings import Settings
from ebrank.service.store import open
from tests.cli.commands import answered, good, refused

MAPS = ("--map", "ranking=list", "--map", "query=search", "--map", "rank=position")
AGGREGATE = ("aggregate", "log.csv", *MAPS, "--impression", "view", "--out", "evidence.parquet")
K = 4


@pytest.fixture
def log(tmp_path: Path) -> None:
    """A log of users who look at the third rank half as often as at the first."""
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


@pytest.mark.slow
@pytest.mark.usefixtures("log")
def test_a_log_starts_a_store_and_tells_how_far_down_users_look() -> None:
    done = good(*AGGREGATE)
    assert done.stdout.startswith("evidence.parquet: 9,000 impressions (")
    assert "ignored event types: scroll (3,000)" in done.stderr
    features = ("--features", "items.csv")
    Path("items.csv").write_text(Path("items.csv").read_text() + "new,9\n")
    came = answered("import", "evidence.parquet", "store", *features)
    clicks = came["behaviors"].pop("click")
    assert 2500 < clicks < 4000
    assert came.pop("prior").startswith("version 1 went live: ")
    assert came == {
        "store": "store",
        "queries": 24,
        "items": 144,
        "new": 1,
        "impressions": 9000,
        "behaviors": {},
        "dropped": 0,
        "live": True,
    }
    assert good("replay", "store").stdout.startswith("equal: 144 items of 24 queries, 0 events")
    ranks = answered("examine", "evidence.parquet", *features)["ranks"]
    assert ranks == answered("examine", "store")["ranks"]
    assert [rank["first"] for rank in ranks] == [1, 2, 3]
    assert ranks[2]["learned"]
    assert abs(ranks[2]["probability"] - 0.5) < 3 * ranks[2]["error"]
    lines = good("examine", "evidence.parquet").stdout.splitlines()
    assert lines[0].split() == ["rank", "looks", "error", "configured", "support"]
    assert max(map(len, lines)) <= 80
    assert asyncio.run(ranked("store", ["i0", "i5", "new"]))[-1] == "i0"  # "new" resembles i5


@pytest.mark.usefixtures("log")
def test_import_without_features_says_what_follows() -> None:
    report = answered(*AGGREGATE)
    assert (report["impressions"], report["ignored"]) == (9000, {"scroll": 3000})
    assert report["out"] == "evidence.parquet"
    said = good("import", "evidence.parquet", "store").stderr
    assert "inactive until you put them" in said
    Path("some.csv").write_text("item,x\ni0,1\n")
    said = good("import", "evidence.parquet", "other", "--features", "some.csv").stderr
    assert "120 items have no features in some.csv and were left out" in said
    Path("none.csv").write_text("item,x\nI0,1\n")
    said = refused("import", "evidence.parquet", "none", "--features", "none.csv")
    assert "exactly as in the log" in said
    assert not Path("none").exists()


def test_one_query_is_one_query() -> None:
    came = Imported(1, 4, 1, 1200, {"click": 267}, 0, "no new version", live=False)
    line, _ = imported_lines("store", came, "items.csv")
    assert line == "store: 1 query, 4 items with history, 1 without; 1,200 impressions (267 click)"


async def ranked(url: str, items: list[str]) -> list[str]:
    """Return some items in the order of an imported store, which may be new to the query."""
    async with open(url) as store:
        engine = await Engine.open(store, Settings())
        answer = await engine.rank(RankRequest("q1", items=[*items]))
        await engine.close()
    return [item.id for item in answer.items]


async def lived(queries: int) -> None:
    """Let users click for a while."""
    rng = np.random.default_rng(2)
    p = np.log2(np.arange(2, K + 2)) ** -0.3
    async with open("store") as store:
        engine = await Engine.open(store, Settings())
        for query in range(queries):
            features = rng.random((10, 1))
            items = [ItemIn(f"i{at}", row.tolist()) for at, row in enumerate(features)]
            await engine.put_items(f"q{query}", items)
            for session in range(60):
                answer = await engine.rank(RankRequest(f"q{query}", k=K))
                await engine.feedback(
                    [
                        EventIn(f"{query}-{session}-{rank}", answer.ranking_id, item.id, "click")
                        for rank, item in enumerate(answer.items)
                        if rng.random() < p[rank] * 0.8 * features[int(item.id[1:]), 0]
                    ]
                )
        await engine.close()


def test_a_few_items_say_nothing_and_the_reason_is_told() -> None:
    asyncio.run(lived(queries=3))
    curve = answered("examine", "store")
    assert 3 * K <= curve["pairs"] <= 30
    assert [rank["error"] for rank in curve["ranks"]] == [0.0, None, None, None]
    assert [rank["learned"] for rank in curve["ranks"]] == [True, False, False, False]
    table = good("examine", "store")
    assert table.stdout.count(" configured ") == K
    reason = f"applies: {curve['pairs']} query-item pairs were shown, too few"
    assert f"note: the configured curve {reason}" in table.stderr
    Path("own.toml").write_text("[examination]\ncurve = [0.0, 0.6, 0.5, 0.4]\n")
    words = ("examine", "store", "--config", "own.toml")
    ranks = answered(*words)["ranks"]  # nobody looks at the first, so it cannot be learned
    assert [rank["learned"] for rank in ranks] == [False, True, False, False]
    assert [rank["error"] for rank in ranks] == [None, 0.0, None, None]


def test_settings_that_lack_behaviors_of_the_store_are_refused() -> None:
    asyncio.run(lived(queries=1))
    Path("own.toml").write_text('[events]\nbehaviors = ["purchase"]\n')
    assert "the store counts click" in refused("examine", "store", "--config", "own.toml")


@pytest.mark.slow
@pytest.mark.usefixtures("log")
def test_evidence_is_forecast_from() -> None:
    good(*AGGREGATE)
    words = (
        *("whatif", "evidence.parquet", "--features", "items.csv", "--worlds", "3"),
        *("--policy", "today", "--policy", "smoothedctr", "--lists", "400"),
    )
    document = answered(*words)
    assert (document["lists"], document["list_length"], document["reference"]) == (400, 3, "today")
    assert answered(*words) == document
    assert answered(*words, "--seed", "1")["policies"] != document["policies"]
    today, other = document["policies"]
    assert today["difference"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert other["per_list"]["low"] < other["per_list"]["mean"] < other["per_list"]["high"]
    done = good(*words, "--out", "page")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "note: the log has no times: no new items arrive" in done.stderr
    assert "Page: page/whatif.html" in done.stderr
    good("whatif", "evidence.parquet", "--worlds", "2", "--lists", "100", "--from", "start")
    assert "no ranker is called 'atuo'" in refused(*words, "--policy", "atuo")


@pytest.mark.slow
def test_a_store_is_forecast_from_and_left_as_it_is() -> None:
    asyncio.run(lived(queries=12))
    before = contents()
    document = answered("whatif", "store", "--worlds", "2", "--policy", "today", "--policy", "bm25")
    assert [each["policy"] for each in document["policies"]] == ["today", "bm25"]
    assert document["lists"] == 12 * 60
    assert document["days"] > 0.0
    assert contents() == before
    assert "works only with evidence" in refused("whatif", "store", "--features", "items.csv")
    assert "no store" in refused("whatif", "nothing")


def contents() -> dict[Path, bytes]:
    """Return the store's databases; SQLite's index of its log, which readers lock, is left out."""
    files = [path for path in Path("store").rglob("*") if path.is_file() and "-" not in path.name]
    assert any(path.stat().st_size > 10_000 for path in files)
    return {path: path.read_bytes() for path in files}
