"""What tests of `ebrank simulate` share: the command, in this process and in one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from ebrank.cli import root

PATIENCE = 120  # seconds, should everything have to be compiled first
TINY = ("--dataset", "mq2007-like", "--scale", "0.01")
SHORT = (*TINY, "--sessions", "80", "--updates", "4", "--trials", "2")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, ["simulate", *map(str, arguments)], prog_name="ebrank")


@contextmanager
def started(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run the command as a user would; it does not outlive the test."""
    with subprocess.Popen(
        [sys.executable, "-m", "ebrank", "simulate", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.01)


def without_seconds(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "seconds"}


def only(printed: str) -> dict[str, Any]:
    """Return what `--json` says of the only ranker there is."""
    [ranker] = json.loads(printed)["rankers"]
    return dict(ranker)


def results_in(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return document
