"""The front page tells the truth: its links lead somewhere, its table is what the demo prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    for name in ("clicks alone", "EBRank"):
        told, printed = (_percentages(name, text) for text in (readme, done.stdout))
        assert len(told) == len(printed) == 5
        # processors may differ in the last digits of the embedded dataset
        assert printed == pytest.approx(told, abs=3), name


def _percentages(name: str, text: str) -> list[int]:
    line = next(line for line in text.splitlines() if re.match(rf"[|│] \**{name}", line))
    return [int(number) for number in re.findall(r"(\d+)%", line)]
