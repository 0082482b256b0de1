"""The files around the code say the same as the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ebrank

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
YAML = [
    ROOT / "CITATION.cff",
    ROOT / ".pre-commit-config.yaml",
    *sorted((ROOT / ".github" / "workflows").glob("*.yml")),
    *sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")),
]


def test_every_file_names_the_same_version() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/ebrank/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", ebrank.__version__)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == ebrank.__version__
    heading = f"## {ebrank.__version__} ({citation['date-released']})\n"
    assert heading in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_files_for_other_tools_can_be_read(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_ci_runs_make_test_on_every_python_and_both_systems() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    job = workflow["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    assert matrix == {
        "os": ["ubuntu-latest", "macos-latest"],
        "python": ["3.11", "3.12", "3.13"],
    }
    assert any(step.get("run", "").startswith("make test") for step in job["steps"])


def test_pre_commit_runs_what_make_lint_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    [repository] = config["repos"]
    for hook in repository["hooks"]:
        tool = Path(hook["entry"].split()[0]).name
        assert f"$(BIN)/{tool}" in makefile


def test_no_requirement_is_listed_twice() -> None:
    for extra, needed in PROJECT["project"]["optional-dependencies"].items():
        names = [canonicalize_name(Requirement(text).name) for text in needed]
        assert len(set(names)) == len(names), extra


def test_the_lock_file_holds_a_version_of_all_that_the_project_needs() -> None:
    lines = (ROOT / "requirements-dev.lock").read_text().splitlines()
    locked = {canonicalize_name(name): version for name, _, version in map(_parts, lines)}
    extras = PROJECT["project"]["optional-dependencies"]
    for text in [*PROJECT["project"]["dependencies"], *extras["dev"]]:
        needed = Requirement(text)
        if needed.name == "ebrank":
            continue
        version = locked.get(canonicalize_name(needed.name))
        assert version is not None, f"{needed.name} is not locked: run `make lock`"
        assert needed.specifier.contains(version), f"{text} excludes {version}: run `make lock`"


def _parts(line: str) -> tuple[str, str, str]:
    name, equals, version = line.partition("==")
    assert equals, f"{line!r} names no version"
    return name, equals, version
