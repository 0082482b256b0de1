"""`ebrank examine` on a real store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from ebrank.service.api import EventIn, ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.settings import Settings
from ebrank.service.store import open
from tests.cli.comparing import ebrank

SEVERITY = 0.3
K = 4


async def lived(folder: Path, queries: int = 15) -> None:
    """Let users who look further down than the settings say click for a while."""
    rng = np.random.default_rng(2)
    p = np.log2(np.arange(2, K + 2)) ** -SEVERITY
    async with open(str(folder)) as store:
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("examined") / "store"
    asyncio.run(lived(path))
    return path


@pytest.mark.slow
def test_the_curve_is_learned(folder: Path) -> None:
    done: Result = ebrank("examine", str(folder), "--json")
    assert done.exit_code == 0, done.output
    ranks = json.loads(done.stdout)["ranks"]
    assert done.stderr == ""
    assert [rank["first"] for rank in ranks] == [1, 2, 3, 4]
    for rank in ranks[1:]:
        truth = np.log2(rank["first"] + 1) ** -SEVERITY
        assert rank["learned"]
        assert abs(rank["probability"] - truth) < 3.5 * rank["error"]
        assert rank["probability"] > rank["configured"] + rank["error"]


def test_a_few_items_say_nothing_and_the_reason_is_told(tmp_path: Path) -> None:
    asyncio.run(lived(tmp_path / "store", queries=3))
    done = ebrank("examine", str(tmp_path / "store"), "--json")
    found = json.loads(done.stdout)
    assert 3 * K <= found["pairs"] <= 30
    assert [rank["error"] for rank in found["ranks"]] == [0.0, None, None, None]
    assert [rank["learned"] for rank in found["ranks"]] == [True, False, False, False]
    table = ebrank("examine", str(tmp_path / "store"))
    assert table.stdout.count(" configured ") == K
    for told in (done.stderr, table.stderr):
        assert "note: the configured curve applies: " in told
        assert f"{found['pairs']} query-item pairs were shown, too few" in told


def test_a_first_rank_that_nobody_looks_at_is_not_learned(tmp_path: Path) -> None:
    asyncio.run(lived(tmp_path / "store", queries=3))
    (tmp_path / "own.toml").write_text("[examination]\ncurve = [0.0, 0.6, 0.5, 0.4]\n")
    words = ("examine", str(tmp_path / "store"), "--config", str(tmp_path / "own.toml"))
    ranks = json.loads(ebrank(*words, "--json").stdout)["ranks"]
    assert [rank["learned"] for rank in ranks] == [False, True, False, False]
    assert [rank["error"] for rank in ranks] == [None, 0.0, None, None]
    assert ebrank(*words, "--plot", str(tmp_path / "curve.svg")).exit_code == 0


@pytest.mark.slow
def test_a_table_and_a_picture(folder: Path, tmp_path: Path) -> None:
    done = ebrank("examine", str(folder), "--plot", str(tmp_path / "curve.svg"))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["rank", "looked", "at", "error", "configured", "support"]
    assert max(map(len, lines)) <= 80
    assert "How far down users look" in (tmp_path / "curve.svg").read_text(encoding="utf-8")


@pytest.mark.slow
def test_mistakes_are_explained(folder: Path, tmp_path: Path) -> None:
    wrong = ebrank("examine", str(folder), "--plot", "curve.gif")
    assert (wrong.exit_code, "writes .svg and .png files" in wrong.output) == (2, True)
    nowhere = ebrank("examine", str(tmp_path / "nothing"))
    assert nowhere.exit_code == 2
    assert "Traceback" not in nowhere.output
