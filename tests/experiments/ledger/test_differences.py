from __future__ import annotations

from dataclasses import replace

import pytest

import ebrank
from ebrank.data.dataset import Origin
from ebrank.experiments.framework.experiment import Setup
from ebrank.experiments.framework.folds import Fold, RankerByFold
from ebrank.experiments.ledger import differences as known
from ebrank.experiments.ledger import references
from ebrank.experiments.ledger.references import Reference
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig


@pytest.fixture(scope="module")
def stand_in() -> Setup:
    return Setup(ebrank.load("mq2007-like", scale=0.01), SimulationConfig())


def of(setup: Setup, origin: Origin) -> Setup:
    return replace(setup, dataset=replace(setup.dataset, name="any", origin=origin))


def reference(setup: Setup) -> Reference:
    theirs = references.reference_for(setup.dataset.origin)
    assert theirs is not None
    return theirs


def of_ranker(setup: Setup, ranker: str, against: str) -> list[str]:
    return known.ranker_differences(reference(setup), registry.parse(ranker), against)


def of_all(setup: Setup) -> list[str]:
    return known.general_differences(setup, reference(setup))


@pytest.mark.parametrize(
    ("ranker", "expected"),
    [
        ("bm25", []),
        ("cftopk:features=none", []),
        ("cftopk:features=concate", [known.OTHER_FEATURE]),
        ("cftopk:features=concate,behavior=ips", []),
        ("prior", [known.OTHER_FEATURE]),
        ("dbgd:features=none", [known.ALL_PARTITIONS]),
        (
            "mgd:features=concate",
            [known.OTHER_FEATURE, known.LOST_CANDIDATES, known.ALL_PARTITIONS],
        ),
        ("pdgd:features=none", [known.ALL_PARTITIONS]),
        ("pdgd:features=concate", [known.OTHER_FEATURE, known.LEAK, known.ALL_PARTITIONS]),
        (
            "ucbrank",
            [known.OTHER_FEATURE, "ε = 0.4 here, not stated there", known.ONCE_CLICKED],
        ),
        (
            "ebrank:epsilon=30",
            ["ε = 30 here, not stated there", known.OTHER_ESTIMATOR, known.OFTEN_SHOWN],
        ),
        (
            "ebrank:estimator=exposure,min_impressions=20",
            ["ε = 20 here, not stated there"],
        ),
    ],
)
def test_known_differences_of_rankers(stand_in: Setup, ranker: str, expected: list[str]) -> None:
    assert of_ranker(stand_in, ranker, ranker) == expected
    assert of_ranker(of(stand_in, Origin("MQ2007", fold=1)), ranker, ranker) == expected


def test_pooled_folds_are_a_difference(stand_in: Setup) -> None:
    data = of(stand_in, Origin("MQ2008", fold=1))
    first = Fold.of(stand_in.dataset, stand_in.config)
    folds = tuple(replace(first, number=n, sessions=n * 1000) for n in (1, 2, 3))
    said = of_all(replace(data, folds=folds))
    assert "folds 1 to 3 here, pooled, fold 1 in the protocol" in said
    assert "14,560 sessions there, 1,000 to 3,000 here" in said
    ranker = RankerByFold((registry.parse("ebrank:epsilon=5"), registry.parse("ebrank")))
    own = known.ranker_differences(reference(stand_in), ranker, "ebrank")
    assert own[0] == "ε = 5/20 here, not stated there"


def test_known_differences_of_the_data(stand_in: Setup) -> None:
    assert of_all(stand_in) == [
        "synthetic data with 0.01 of its queries in place of MQ2007",
        "only 599 sessions, as the set is scaled, and Cum-NDCG grows with their number until it "
        "levels off",
    ]
    whole = of(stand_in, Origin("mq2007-like", preset=True))
    assert of_all(whole) == ["synthetic data in place of MQ2007"]
    assert of_all(of(stand_in, Origin("MQ2007", fold=1))) == []


def test_the_released_code_had_another_simulation_and_a_known_epsilon(stand_in: Setup) -> None:
    setup = of(stand_in, Origin("MQ2008", fold=1))
    ours = setup.config.session_count(setup.dataset)
    sessions = f"14,560 sessions there, {ours:,} here"
    assert of_all(setup) == [sessions, *known.AS_RELEASED]
    as_many = replace(setup, config=replace(setup.config, sessions=14_560))
    assert of_all(as_many) == [*known.AS_RELEASED]
    assert of_ranker(setup, "bm25", "bm25") == of_ranker(setup, "prior", "prior") == []
    assert of_ranker(setup, "prior:behavior=ips", "prior") == [known.RELEASED_FEATURE]
    zero = "ebrank:epsilon=0.0"
    different = of_ranker(setup, "ebrank:epsilon=30", zero)
    assert different == ["ε = 0 there, 30 here", known.OFTEN_SHOWN, known.PLAIN_ALPHA]
    assert of_ranker(setup, "ebrank:epsilon=0,min_impressions=20", zero) == [known.PLAIN_ALPHA]
    assert of_ranker(setup, "ebrank:part=behavior", "ebrank:part=behavior") == []


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (Origin("MQ2007", fold=2), "fold 2 here, fold 1 in the protocol"),
        (Origin("MQ2007"), "an unknown fold here, fold 1 in the protocol"),
        (Origin("MQ2007", fold=1, options=(("max_label", "3"),)), "max_label = 3 here"),
    ],
)
def test_other_data_is_a_difference(stand_in: Setup, origin: Origin, expected: str) -> None:
    assert of_all(of(stand_in, origin)) == [expected]


def test_everything_the_user_changed_is_a_difference(stand_in: Setup) -> None:
    config = SimulationConfig(
        entering_probability=0.5, initial_candidates=(4, 4), updates=4, sessions=400, discount=0.9
    )
    for origin in (Origin("MQ2007", fold=1), Origin("MQ2008", fold=1)):
        setup = replace(of(stand_in, origin), config=config)
        assert set(of_all(setup)) - set(known.AS_RELEASED) == {
            f"400 sessions here, by a formula there, and Cum-NDCG {known.WITH_SESSIONS}"
            if origin.name == "MQ2007"
            else "14,560 sessions there, 400 here",
            "entering_probability = 0.5 here, 1.0 by default",
            "initial_candidates = (4, 4) here, (5, 10) by default",
            "updates = 4 here, 20 by default",
            "discount = 0.9 here, 0.995 by default",
        }
