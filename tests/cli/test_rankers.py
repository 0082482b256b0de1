"""`ebrank rankers` tells what rankers declare, and nothing else."""

from __future__ import annotations

import pytest

from ebrank.lab.rankers import registry
from ebrank.parameters import typed
from tests.cli.commands import answered, good

NAMES = "bm25 cftopk cfrandomk cfepsilon dbgd mgd pdgd prior ucbrank ebrank thompson random oracle"


def test_all_rankers_are_listed() -> None:
    done = good("rankers")
    text = " ".join(done.stdout.split())
    first_words = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    assert set(NAMES.split()) <= first_words
    assert "cftopk W/o-Behav, Concate Sort by a linear model" in text
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_has_every_declaration() -> None:
    listed = answered("rankers")["rankers"]
    known = registry.built_in()
    assert [one["name"] for one in listed] == list(known)
    assert set(NAMES.split()) <= set(known)
    for one in listed:
        ranker = known[one["name"]]
        assert (one["help"], tuple(one["settings"])) == (ranker.help, ranker.settings)
        declared = [(p.name, p.default, p.help, p.domain) for p in ranker().parameters()]
        listed = [(p["name"], p["default"], p["help"], p["takes"]) for p in one["parameters"]]
        assert listed == declared


@pytest.mark.parametrize("name", NAMES.split())
def test_one_ranker_is_shown_with_its_parameters(name: str) -> None:
    done = good("rankers", name)
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.startswith(f"{name}\n")
    parameters = list(registry.built_in()[name]().parameters())
    for parameter in parameters:
        assert {parameter.name, typed(parameter.default)} <= set(done.stdout.split())
    assert ("Parameters: none" in done.stdout) == (not parameters)
    assert answered("rankers", name)["name"] == name
