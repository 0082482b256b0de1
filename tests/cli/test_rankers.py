"""`ebrank rankers` tells what rankers declare, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root
from ebrank.rankers import registry

NAMES = "bm25 cftopk cfrandomk cfepsilon dbgd mgd pdgd prior ucbrank ebrank thompson random oracle"


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["rankers", *arguments], prog_name="ebrank")


def test_all_rankers_are_listed() -> None:
    done = run()
    assert done.exit_code == 0
    text = " ".join(done.stdout.split())
    first_words = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    assert set(NAMES.split()) <= first_words
    assert "cftopk W/o-Behav, Concate Sort by a linear model" in text
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_has_every_declaration() -> None:
    listed = json.loads(run("--json").stdout)["rankers"]
    known = registry.known()
    assert [one["name"] for one in listed] == list(known)
    assert set(NAMES.split()) <= set(known)
    for one in listed:
        ranker = known[one["name"]]
        assert (one["help"], tuple(one["settings"])) == (ranker.help, ranker.settings)
        declared = [(p.name, p.default, p.help, p.domain) for p in ranker().parameters()]
        listed = [(p["name"], p["default"], p["help"], p["takes"]) for p in one["parameters"]]
        assert listed == declared


def test_rankers_of_packages_are_listed_but_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "other_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[ebrank.rankers]\nother = no_such_module:Other\n")
    monkeypatch.syspath_prepend(tmp_path)
    listed = " ".join(run().stdout.split())
    assert "other From the package other-package: no_such_module:Other." in listed
    installed = json.loads(run("--json").stdout)["installed"]
    assert installed == {"other": "From the package other-package: no_such_module:Other."}
    done = run("other")
    assert done.exit_code == 2
    assert "no module is called 'no_such_module'" in done.stderr


@pytest.mark.parametrize("name", NAMES.split())
def test_one_ranker_is_shown_with_its_parameters(name: str) -> None:
    done = run(name)
    assert done.exit_code == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.startswith(f"{name}\n")
    for parameter in registry.known()[name]().parameters():
        assert parameter.name in done.stdout
    assert json.loads(run(name, "--json").stdout)["name"] == name


def test_an_unknown_ranker_is_a_mistake() -> None:
    done = run("dbg")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no ranker is called 'dbg'; did you mean dbgd?" in done.stderr
