from __future__ import annotations

from dataclasses import replace

import pytest

import ebrank
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


def named(setup: Setup, name: str) -> Setup:
    return replace(setup, dataset=replace(setup.dataset, name=name))


def told(setup: Setup, ranker: str, against: str) -> list[str]:
    theirs = paper.reference(setup.dataset.name)
    assert theirs is not None
    return departures(setup, theirs, registry.parse(ranker), against)


@pytest.mark.parametrize(
    ("ranker", "expected"),
    [
        ("bm25", []),
        ("cftopk:features=concate", []),
        ("dbgd:features=none", [known.ALL_PARTITIONS]),
        ("mgd:features=concate", [known.LOST_CANDIDATES, known.ALL_PARTITIONS]),
        ("pdgd:features=none", [known.ALL_PARTITIONS]),
        ("pdgd:features=concate", [known.LEAK, known.ALL_PARTITIONS]),
        ("ucbrank", ["ε = 0.4 here, not stated there", known.ONCE_CLICKED]),
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
    assert told(named(stand_in, "MQ2007"), ranker, ranker) == expected
    whole = "synthetic data in place of MQ2007"
    assert told(named(stand_in, "mq2007-like"), ranker, ranker) == [whole, *expected]


def test_the_released_code_had_other_sessions_and_a_known_epsilon(stand_in: Setup) -> None:
    setup = named(stand_in, "MQ2008")
    ours = setup.config.session_count(setup.dataset)
    assert told(setup, "bm25", "bm25") == [f"14,560 sessions there, {ours:,} here"]
    as_many = replace(setup, config=replace(setup.config, sessions=14_560))
    assert told(as_many, "bm25", "bm25") == []
    zero = "ebrank:epsilon=0.0"
    assert told(as_many, "ebrank:epsilon=30", zero)[0] == "ε = 0 there, 30 here"
    assert told(as_many, "ebrank:epsilon=0,min_impressions=20", zero) == []
