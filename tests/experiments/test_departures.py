from __future__ import annotations

from dataclasses import replace

import pytest

import ebrank
from ebrank.data.origin import Origin
from ebrank.experiments import departures as known
from ebrank.experiments import paper
from ebrank.experiments.departures import departures
from ebrank.experiments.run import Setup
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig

SYNTHETIC = "synthetic data with 0.01 of its queries in place of MQ2007"


@pytest.fixture(scope="module")
def stand_in() -> Setup:
    return Setup(ebrank.load("mq2007-like", scale=0.01), SimulationConfig())


def of(setup: Setup, origin: Origin) -> Setup:
    return replace(setup, dataset=replace(setup.dataset, name="any", origin=origin))


def told(setup: Setup, ranker: str, against: str) -> list[str]:
    theirs = paper.reference(setup.dataset.origin)
    assert theirs is not None
    return departures(setup, theirs, registry.parse(ranker), against)


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
def test_what_is_known_of_a_ranker(stand_in: Setup, ranker: str, expected: list[str]) -> None:
    assert told(stand_in, ranker, ranker) == [SYNTHETIC, *expected]
    assert told(of(stand_in, Origin("MQ2007", fold=1)), ranker, ranker) == expected
    whole = "synthetic data in place of MQ2007"
    preset = Origin("mq2007-like", preset=True)
    assert told(of(stand_in, preset), ranker, ranker) == [whole, *expected]


def test_the_released_code_had_another_simulation_and_a_known_epsilon(stand_in: Setup) -> None:
    setup = of(stand_in, Origin("MQ2008", fold=1))
    ours = setup.config.session_count(setup.dataset)
    sessions = f"14,560 sessions there, {ours:,} here"
    assert told(setup, "bm25", "bm25") == [sessions, *known.AS_RELEASED]
    as_many = replace(setup, config=replace(setup.config, sessions=14_560))
    assert told(as_many, "bm25", "bm25") == [*known.AS_RELEASED]
    learning = [*known.AS_RELEASED, known.LEARNS_LATE]
    assert told(as_many, "prior", "prior") == learning
    assert told(as_many, "prior:behavior=ips", "prior") == [*learning, known.RELEASED_FEATURE]
    zero = "ebrank:epsilon=0.0"
    different = told(as_many, "ebrank:epsilon=30", zero)
    assert different == [*learning, "ε = 0 there, 30 here", known.OFTEN_SHOWN, known.PLAIN_ALPHA]
    same = told(as_many, "ebrank:epsilon=0,min_impressions=20", zero)
    assert same == [*learning, known.PLAIN_ALPHA]


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (Origin("MQ2007", fold=2), "fold 2 here, fold 1 in the protocol"),
        (Origin("MQ2007"), "an unknown fold here, fold 1 in the protocol"),
        (Origin("MQ2007", fold=1, options=(("max_label", "3"),)), "max_label = 3 here"),
    ],
)
def test_other_data_is_told(stand_in: Setup, origin: Origin, expected: str) -> None:
    assert told(of(stand_in, origin), "bm25", "bm25") == [expected]


def test_everything_the_user_changed_is_told(stand_in: Setup) -> None:
    config = SimulationConfig(
        entering_probability=0.5, initial_candidates=(4, 4), updates=4, sessions=400, discount=0.9
    )
    for origin in (Origin("MQ2007", fold=1), Origin("MQ2008", fold=1)):
        setup = replace(of(stand_in, origin), config=config)
        assert set(told(setup, "bm25", "bm25")) - set(known.AS_RELEASED) == {
            "400 sessions here, by a formula there"
            if origin.name == "MQ2007"
            else "14,560 sessions there, 400 here",
            "entering_probability = 0.5 here, 1.0 by default",
            "initial_candidates = (4, 4) here, (5, 10) by default",
            "updates = 4 here, 20 by default",
            "discount = 0.9 here, 0.995 by default",
        }
