"""`docs/rankers.md`: its table is what rankers declare, and its example runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebrank.cli.rankers import in_words
from ebrank.lab import rankers
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import REGISTRY
from ebrank.parameters import typed
from ebrank.testing import check_ranker
from tests.cli.commands import answered, good

PAGE = Path(__file__).parents[1] / "docs" / "rankers.md"
TINY = ("--dataset", "mq2007-like", "--scale", "0.01", "--sessions", "200", "--trials", "2")


def test_the_table_is_current() -> None:
    lines = ["| name | features | what it does | parameters |", "|---|---|---|---|"]
    for name, ranker in registry.built_in().items():
        told = ", ".join(f"`{p.name}={typed(p.default)}`" for p in ranker().parameters()) or "–"
        settings = in_words(list(ranker.settings))
        lines.append(f"| `{name}` | {settings} | {ranker.help} | {told} |")
    table = "\n".join(lines)
    assert table in PAGE.read_text(), f"put this table into {PAGE.name}:\n{table}"


def test_every_ranker_is_described() -> None:
    described = set(re.findall(r"^- \*\*`(\w+)`", PAGE.read_text(), re.MULTILINE))
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^- \*\*.*", PAGE.read_text(), re.M))))
    assert described <= set(registry.built_in()) <= named


@pytest.fixture
def example(tmp_path: Path) -> Iterator[str]:
    """Add the page's example to the rankers, as its reader would: by putting a file there."""
    (code,) = re.findall(r"^```python\n(\"\"\".*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "smoothed.py").write_text(code)
    rankers.__path__.append(str(tmp_path))
    yield code
    rankers.__path__.remove(str(tmp_path))
    REGISTRY.pop("smoothed", None)
    sys.modules.pop("ebrank.lab.rankers.smoothed", None)


def test_the_example_runs(example: str) -> None:
    assert len([line for line in example.splitlines() if line.strip()]) <= 35
    assert "smoothed" in good("rankers").stdout
    assert "strength" in good("rankers", "smoothed").stdout
    both = ("--ranker", "smoothed:strength=2", "--ranker", "random")
    ours, floor = answered("simulate", *TINY, *both)["rankers"]
    assert ours["warm_ndcg"]["mean"] > floor["warm_ndcg"]["mean"]
    tuned = answered("tune", *TINY, "--ranker", "smoothed")
    assert [point["values"]["strength"] for point in tuned["tuning"]["points"][:3]] == [1, 5, 25]
    check_ranker(registry.parse("smoothed:strength=2"))


@pytest.mark.slow
def test_the_example_runs_from_the_working_folder(example: str, tmp_path: Path) -> None:
    """`-P` keeps Python from looking there by itself, as the installed command does."""
    ranker = ("--ranker", "smoothed:Smoothed:strength=2", "--json")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ebrank", "simulate", *TINY, *ranker],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    ours = answered("simulate", *TINY, "--ranker", "smoothed:strength=2")
    [by_path], [by_name] = json.loads(done.stdout)["rankers"], ours["rankers"]
    assert by_path["warm_ndcg"] == by_name["warm_ndcg"]


def test_the_example_leaves_nothing_behind() -> None:
    assert "smoothed" not in registry.built_in()
