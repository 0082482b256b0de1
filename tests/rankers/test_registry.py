from __future__ import annotations

import subprocess
import sys

import pytest

from ebrank.errors import ParameterError
from ebrank.policy import policies as policy
from ebrank.rankers import registry
from ebrank.rankers.bm25 import BM25
from ebrank.rankers.ebrank import EBRank

PROMISED = (
    "bm25 cftopk cfrandomk cfepsilon dbgd mgd pdgd prior ucbrank ebrank thompson random oracle"
)


def test_every_promised_ranker_is_known_by_name() -> None:
    known = registry.built_in()
    assert set(PROMISED.split()) <= set(known)
    assert list(known) == sorted(known)
    assert all(ranker.name == name for name, ranker in known.items())


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
        ("ebrank:epsilom=3", "ebrank has no parameter 'epsilom'; did you mean epsilon? Known: "),
        ("ebrank:epsilon", "ebrank: epsilon needs a value, as in epsilon=20"),
        ("ebrank:clamp", "ebrank: clamp needs a value, as in clamp=false"),
        ("ebrank:=3", "ebrank has no parameter ''"),
        ("ebrank:epsilon=1,epsilon=2", "ebrank: epsilon is given twice"),
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


@pytest.mark.parametrize(
    "text",
    [
        "cftopk:features=non-concate",
        "cfepsilon:noise=-1",
        "ucbrank:epsilon=-0.1",
        "pdgd:learn_from=test",
        "dbgd:step=-1",
        "mgd:candidates=0",
        "mgd:candidates=1001",
        "dbgd:decay=1.01",
    ],
)
def test_parameters_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=text.partition(":")[2].partition("=")[0]):
        registry.parse(text)


def test_the_setting_is_that_of_the_features() -> None:
    assert registry.parse("cftopk").setting == "none"
    assert registry.parse("cftopk:features=concate").setting == "concate"
    assert registry.parse("ebrank").setting == "non-concate"


def test_knowing_all_rankers_imports_nothing_heavy() -> None:
    program = (
        "import sys; from ebrank.rankers import registry; registry.built_in(); "
        "print([name for name in ('numba', 'scipy', 'sklearn', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stderr, done.stdout.strip()) == ("", "[]")
