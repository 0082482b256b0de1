"""The front page tells the truth: its links lead somewhere, its table is what the demo prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ebrank import Client
from tests.threaded import Threaded

PROJECT = Path(__file__).parents[1]
PAGES = [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md"), *PROJECT.glob("benchmarks/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.slow
def test_the_demo_prints_the_table_of_the_readme() -> None:
    done = subprocess.run(
        [sys.executable, PROJECT / "examples" / "new_item.py"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    picture = (PROJECT / "docs" / "images" / "new-item.svg").read_text(encoding="utf-8")
    for name in ("clicks alone", "EBRank", "auto"):
        told, printed = (_percentages(name, text) for text in (readme, done.stdout))
        assert len(told) == len(printed) == 5
        # processors may differ in the last digits of the embedded dataset
        assert printed == pytest.approx(told, abs=3), name
        assert f">{name}  {told[-1]}%<" in picture


@pytest.mark.slow
def test_the_walk_with_curl_can_be_pasted(tmp_path: Path) -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    [walk] = [
        block for block in re.findall(r"```sh\n(.*?)```", readme, re.DOTALL) if "curl" in block
    ]
    with Threaded(tmp_path) as server:
        local = walk.replace("http://127.0.0.1:8000", server.url)
        done = subprocess.run(
            ["sh", "-e", "-c", local], capture_output=True, text=True, check=True, timeout=60
        )
        assert '"added":2' in done.stdout
        assert '"accepted":1' in done.stdout
        with Client(server.url) as client:
            clicked = {item.id: item.clicks for item in client.query("tea").items}
        assert clicked == {"sencha": 1, "assam": 0}


def _percentages(name: str, text: str) -> list[int]:
    line = next(line for line in text.splitlines() if re.match(rf"[|│] \**{name}", line))
    return [int(number) for number in re.findall(r"(\d+)%", line)]
