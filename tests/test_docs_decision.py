"""The walk from a log to a decision, as its page says: on a shop made up, and on a real log."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from ebrank.logs import read_evidence
from tests.shell import Shell, shell

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "decide.md"
BLOCK = re.compile(r"```(sh|python|toml)\n(.*?)```", re.DOTALL)
BLOCKS = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
AGGREGATE = "ebrank aggregate log.csv --clicked clicked --out evidence.parquet\n"

pytestmark = pytest.mark.slow


def followed(terminal: Shell, blocks: Iterable[tuple[str, str]]) -> str:
    """Write the files of some blocks, and run their commands; return what these print."""
    printed = ""
    for kind, text in blocks:
        if kind == "sh":
            printed += terminal.run(text)
        else:
            name = text.splitlines()[0].removeprefix("# file: ")
            (terminal.folder / name).write_text(terminal.local(text), encoding="utf-8")
    return printed


def test_on_a_shop(tmp_path: Path) -> None:
    with shell(tmp_path) as terminal:
        printed = followed(terminal, BLOCKS)
        with terminal.client() as client:
            own, ebrank = client.experiment("first").arms
            live = client.rank("query 7", k=5)
    assert "36,000 impressions" in printed
    assert "went live" in printed
    assert "auto promises the most" in printed
    [gain] = re.findall(r"'gain': ([-\d.e]+)", printed)
    assert float(gain) > 0
    assert own.lists + ebrank.lists == 1500
    low = ebrank.difference["clicks"].low  # the difference is some 0.5 clicks per list
    assert low is not None
    assert low > 0
    assert not live.would_rank


def test_on_the_log_that_opensearch_ships(ubi_folder: Path, tmp_path: Path) -> None:
    [users, *_], begin = BLOCKS, [text.startswith(AGGREGATE) for _, text in BLOCKS].index(True)
    (kind, text), *rest = BLOCKS[begin:]
    shutil.copy(ubi_folder / "ubi_queries_events.ndjson", tmp_path / "log.ndjson")
    with shell(tmp_path) as terminal:
        terminal.run("ebrank aggregate log.ndjson --ubi --out evidence.parquet")
        items = sorted(set(read_evidence(tmp_path / "evidence.parquet").items))
        table = "".join(f"{item},1\n" for item in items)
        (tmp_path / "items.csv").write_text(f"item,one\n{table}")
        printed = followed(terminal, [users, (kind, text.removeprefix(AGGREGATE)), *rest])
        with terminal.client() as client:
            readout = client.experiment("first")
    assert "148 queries, 1,106 items with history; 1,954 impressions (186 click)" in printed
    assert "promises" in printed
    assert re.search(r"'gain': [\d.]+", printed)
    assert readout.state == "ended"
    assert sum(arm.lists for arm in readout.arms) == 1500
