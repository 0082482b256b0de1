"""Rankers by name: of ebrank and of a folder, and what is said of those that cannot be had."""

from __future__ import annotations

import pytest

from ebrank.errors import ParameterError
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.bm25 import BM25
from ebrank.lab.rankers.ebrank import EBRank
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.model.policy import policies as policy
from tests.importing import Folder, folder
from tests.lab.simulation.tiny import tiny

__all__ = ["folder"]

MINE = """
from dataclasses import dataclass
from ebrank.lab.rankers.base import Ranker, Trial, TrialLearner, param
from ebrank.lab.rankers.ebrank import EBRank

@dataclass(frozen=True)
class Mine(Ranker):
    name = "mine"
    help = "EBRank under another name."
    settings = ("non-concate",)
    epsilon: float = param(1.0, "weight", at_least=0)

    def learner(self, trial: Trial) -> TrialLearner:
        return EBRank().with_parameters(epsilon=self.epsilon).learner(trial)

class Shelf:
    Mine = Mine

class Nameless(Ranker): ...
class Undecorated(Ranker):
    name, help, settings = "undecorated", "Undecorated.", ("none",)
class Clash(EBRank): ...

@dataclass
class Thawed(Ranker):
    name, help, settings = "thawed", "Thawed.", ("none",)

@dataclass(frozen=True)
class Elsewhere(Ranker):
    name, help, settings = "elsewhere", "In no setting.", ("some",)

@dataclass(frozen=True)
class Bare(Ranker):
    name, help, settings = "bare", "A parameter without help.", ("none",)
    x: float = 1.0

@dataclass(frozen=True)
class Silent(Ranker):
    name, help, settings = "silent", "Does not learn.", ("none",)
"""


@pytest.fixture
def mine(folder: Folder) -> None:
    folder.write({"my_rankers": MINE})


@pytest.mark.usefixtures("mine")
def test_a_class_is_a_ranker_like_any_other() -> None:
    ranker = registry.parse("my_rankers:Mine:epsilon=2")
    assert str(ranker) == "my_rankers:Mine:epsilon=2"
    assert registry.parse(str(ranker)) == ranker
    assert str(registry.parse("my_rankers:Mine")) == "my_rankers:Mine"
    assert registry.parse("my_rankers:Shelf.Mine:").epsilon == 1.0  # type: ignore[attr-defined]
    config = SimulationConfig(updates=2, sessions=60)
    got = run_trial(tiny(), ranker, config, seed=1, trial=0)
    same = run_trial(tiny(), registry.parse("ebrank:epsilon=2"), config, seed=1, trial=0)
    assert got.test_ndcg.tolist() == same.test_ndcg.tolist()


@pytest.mark.usefixtures("mine")
def test_a_ranker_from_elsewhere_is_not_known_by_its_name() -> None:
    registry.parse("my_rankers:Mine")
    assert "mine" not in registry.built_in()
    with pytest.raises(ParameterError, match="no ranker is called 'mine'"):
        registry.parse("mine")


def test_the_path_of_a_built_in_ranker_gives_that_ranker() -> None:
    ranker = registry.parse("ebrank.lab.rankers.ebrank:EBRank:epsilon=3")
    assert ranker == registry.parse("ebrank:epsilon=3")
    assert str(ranker) == "ebrank:epsilon=3"


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("my_rankers:Nameless", "my_rankers:Nameless has no name; a ranker has name, help, sett"),
        ("my_rankers:Undecorated", "needs the decorator @dataclass\\(frozen=True\\)"),
        ("my_rankers:Thawed", "needs the decorator @dataclass\\(frozen=True\\)"),
        ("my_rankers:Elsewhere", "settings must be none or concate or non-concate"),
        ("my_rankers:Bare", "declare x of Bare with param"),
        ("my_rankers:Silent", "has no method learner"),
        ("my_rankers:Clash", "has the name 'ebrank', which is one of ebrank's own; choose another"),
        ("my_rankers:epsilon=2", "no ranker is called 'my_rankers'"),
    ],
)
def test_mistakes_are_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        registry.parse(text)


def test_a_known_name_wins_over_a_module(folder: Folder) -> None:
    folder.write({"bm25": MINE})
    with pytest.raises(ParameterError, match="bm25 has no parameter 'Mine'"):
        registry.parse("bm25:Mine")


# --- built in -------------------------------------------------------------------------------------


def test_parses_names_and_parameters() -> None:
    assert registry.parse("bm25") == BM25()
    assert registry.parse("bm25:") == BM25()
    assert registry.parse("ebrank:epsilon=3,estimator=exposure") == EBRank(
        policy.make("ebrank", epsilon=3.0, estimator="exposure")
    )


def test_a_ranker_is_printed_as_it_is_typed() -> None:
    text = "ebrank:epsilon=3,min_impressions=2,early_stopping=false"
    assert str(registry.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ebrnk", "no ranker is called 'ebrnk'; did you mean ebrank? Known: auto, "),
        ("", "no ranker is called ''. Known: auto, "),
        ("EBRank", "no ranker is called 'EBRank'; did you mean ebrank?"),
        ("bm25:k=1", "bm25 has no parameter 'k'; it has none."),
    ],
)
def test_mistakes_are_explained(text: str, said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        registry.parse(text)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    "text",
    [
        "dbgd:features=none,behavior=exposure,rate=0.1,decay=0.99999,step=1",
        "mgd:candidates=9,rate=0.1,decay=0.99999,step=1",
        "pdgd:features=none,behavior=exposure,rate=0.1,decay=0.9999",
        "toprank:delta=1",
    ],
)
def test_defaults_are_those_of_the_papers_protocol(text: str) -> None:
    assert str(registry.parse(text)) == text.partition(":")[0]


def test_the_setting_is_that_of_the_features() -> None:
    assert registry.parse("cftopk").setting == "none"
    assert registry.parse("cftopk:features=concate").setting == "concate"
    assert registry.parse("ebrank").setting == "non-concate"
