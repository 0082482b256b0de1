"""What tests of `ebrank data` share: the command, and a small fold for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from ebrank.cli import root


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(root, ["data", *map(str, arguments)], prog_name="ebrank")


def run_json(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the one document on stdout; stderr must be silent."""
    done = run(*arguments, "--json")
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    return done.exit_code, document


def write_fold(folder: Path, features: int = 46, items: int = 7) -> Path:
    folder.mkdir(parents=True)
    for split in ("train", "vali", "test"):
        rows = (
            f"{item % 3} qid:{split} 1:{item} {features}:{item * item}\n" for item in range(items)
        )
        (folder / f"{split}.txt").write_text("".join(rows))
    return folder
