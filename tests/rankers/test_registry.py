from __future__ import annotations

import pytest

from ebrank.errors import ParameterError
from ebrank.policy import policies as policy
from ebrank.rankers import registry
from ebrank.rankers.bm25 import BM25
from ebrank.rankers.ebrank import EBRank


def test_parses_names_and_parameters() -> None:
    assert registry.parse("bm25") == BM25()
    assert registry.parse("bm25:") == BM25()
    assert registry.parse("ebrank:epsilon=3,estimator=exposure") == EBRank(
        policy.make("ebrank", epsilon=3.0, estimator="exposure")
    )


def test_a_ranker_is_printed_as_it_is_typed() -> None:
    text = "ebrank:epsilon=3,clamp=true,early_stopping=false"
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
        "dbgd:features=none,behavior=exposure,default=zero,learn_from=train,rate=0.1,decay=0.99999",
        "dbgd:step=1,credit=disputed",
        "mgd:candidates=9,rate=0.1,decay=0.99999,step=1",
        "pdgd:features=none,behavior=exposure,default=zero,learn_from=train,rate=0.1,decay=0.9999",
        "toprank:delta=1",
    ],
)
def test_defaults_are_those_of_the_papers_protocol(text: str) -> None:
    assert str(registry.parse(text)) == text.partition(":")[0]


def test_the_setting_is_that_of_the_features() -> None:
    assert registry.parse("cftopk").setting == "none"
    assert registry.parse("cftopk:features=concate").setting == "concate"
    assert registry.parse("ebrank").setting == "non-concate"
