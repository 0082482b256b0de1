"""What tests of the command line share: commands in this process and in their own, and datasets."""

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

PATIENCE = 240  # seconds, should everything have to be compiled first
TINY = ("--dataset", "mq2007-like", "--scale", "0.01")
SHORT = (*TINY, "--sessions", "80", "--updates", "4", "--trials", "2", "--seed", "1")
LONG = ("--dataset", "mq2007-like", "--scale", "0.03", "--trials", "400", "--ranker", "ebrank")


def ebrank(*words: str | Path) -> Result:
    """Run a command in this process."""
    done = CliRunner().invoke(root, [*map(str, words)], prog_name="ebrank")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def good(*words: str | Path) -> Result:
    """Run a command that must succeed."""
    done = ebrank(*words)
    assert done.exit_code == 0, done.output
    return done


def answered(*words: str | Path) -> Any:  # noqa: ANN401 (JSON)
    """Return the one document that a command prints for scripts."""
    return json.loads(good(*words, "--json").stdout)


def refused(*words: str | Path) -> str:
    """Return what a command says that must fail because of its input, with nothing on stdout."""
    done = ebrank(*words)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert "Traceback" not in done.stderr
    return done.stderr


def simulated(folder: str, *rankers: str, options: tuple[str | Path, ...] = SHORT) -> None:
    """Leave a folder of `ebrank simulate` behind."""
    words = [word for ranker in rankers for word in ("--ranker", ranker)]
    good("simulate", *words, *options, "--out", folder)


@contextmanager
def started(*words: str | Path, **how: Any) -> Iterator[subprocess.Popen[str]]:  # noqa: ANN401
    """Run a command as a user would; it does not outlive the test."""
    command = [sys.executable, "-m", "ebrank", *map(str, words)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **how) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.002)


def trials(folder: Path) -> dict[str, int]:
    """Return the trials that a folder keeps, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.npz")}


def results_in(folder: str | Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(folder, "results.json").read_text())
    return document


def without_seconds(document: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of rankers, but for run times."""
    for ranker in document["rankers"]:
        ranker.pop("seconds", None)
    return document


def write_split(path: Path, queries: int = 1, items: int = 7, features: int = 46) -> None:
    """Write a small split in LETOR's format, with a query for each letter of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (
        f"{item % 3} qid:{path.stem}{query or ''} 1:{item + query} 2:{item % 4} "
        f"{features}:{item * item}\n"
        for query in range(queries)
        for item in range(items)
    )
    path.write_text("".join(rows))


def write_fold(folder: Path, queries: int = 1, items: int = 7, features: int = 46) -> Path:
    """Write a small dataset: train.txt, vali.txt and test.txt."""
    for split in ("train", "vali", "test"):
        write_split(folder / f"{split}.txt", queries, items, features)
    return folder
