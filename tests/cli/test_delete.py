"""`ebrank delete`: what it refuses; `tests/service/core/test_deletions.py` has what it deletes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root


def ebrank(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments, prog_name="ebrank")


@pytest.mark.parametrize("option", [["--user", "ada"], ["--query", "tea"], ["--vacuum"]])
def test_a_path_without_a_store_is_refused_and_stays_without(
    tmp_path: Path, option: list[str]
) -> None:
    done = ebrank("delete", str(tmp_path / "typo"), *option)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "typo: no store, for there is no log.db. Name the folder that was served" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["item", "query", "user"])
@pytest.mark.parametrize("name", ["", "long" * 1000])
def test_a_name_that_a_server_would_refuse_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    store = str(tmp_path / "store")
    assert ebrank("store", "init", store).exit_code == 0
    done = ebrank("delete", store, f"--{kind}", name)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: name: Expected `str` of length ")
    assert ebrank("delete", store, "--list").stdout == "Nothing has been deleted so far.\n"
