"""The walk from a log to a decision, as its page says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.shell import Shell, shell

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "decide.md"
BLOCK = re.compile(r"```(sh|python|toml)\n(.*?)```", re.DOTALL)
BLOCKS = BLOCK.findall(PAGE.read_text(encoding="utf-8"))

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
    assert "auto is expected to do best" in printed
    assert "look: running" in printed
    assert own.lists + ebrank.lists == 1500
    low = ebrank.difference["clicks"].low  # the difference is some 0.5 clicks per list
    assert low is not None
    assert low > 0
    assert live.counted
