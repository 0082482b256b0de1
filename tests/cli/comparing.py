"""What tests of `ebrank compare` share."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from ebrank.cli import root

TINY = ("--dataset", "mq2007-like", "--scale", "0.01")
SHORT = (*TINY, "--sessions", "80", "--updates", "4", "--trials", "2", "--seed", "1")


def ebrank(*arguments: str | Path) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(root, [*map(str, arguments)], prog_name="ebrank")


def simulated(folder: str, *rankers: str, options: tuple[str, ...] = SHORT) -> None:
    """Leave a folder of `ebrank simulate` behind."""
    words = [word for ranker in rankers for word in ("--ranker", ranker)]
    assert ebrank("simulate", *words, *options, "--out", folder).exit_code == 0
