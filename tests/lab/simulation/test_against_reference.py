"""The compiled engine against the slow reference: the same lists, clicks, statistics, measures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from ebrank.evidence import Examination
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.users import PositionBased, parse
from tests.lab.simulation.comparison import assert_whole_run_agrees
from tests.lab.simulation.reference_online import OnlineReference, TopRankReference
from tests.lab.simulation.tiny import tiny, variants
from tests.lab.simulation.users import SHOP, Impatient, Shoppers

CONFIGS = {
    "the paper's": SimulationConfig(updates=4),
    "few enter, short lists": SimulationConfig(
        entering_probability=0.3,
        initial_candidates=(2, 3),
        warmup_sessions=3,
        updates=5,
        sessions=170,
        list_length=3,
        discount=0.9,
        cutoffs=(2, 7),
        users=PositionBased(Examination(cutoff=2)),
    ),
    "no warm-up, long lists, mistaken belief": SimulationConfig(
        entering_probability=0.8,
        initial_candidates=(1, 1),
        warmup_sessions=0,
        updates=3,
        sessions=160,
        list_length=9,
        users=PositionBased(Examination(cutoff=5)),
        assumed=Examination(severity=0.7),
    ),
    "a measured curve with a gap, all there at once": SimulationConfig(
        initial_candidates=(40, 60),
        warmup_sessions=2,
        updates=2,
        sessions=120,
        list_length=4,
        users=PositionBased(Examination(curve=(0.9, 0.0, 0.5))),
    ),
    "one item shown": SimulationConfig(
        updates=20, sessions=164, list_length=1, warmup_sessions=1, cutoffs=(1,)
    ),
    "impatient users": SimulationConfig(updates=3, sessions=130, list_length=6, users=Impatient()),
    "users who scan down": SimulationConfig(
        updates=3,
        sessions=150,
        list_length=7,
        users=parse("cascade:cutoff=6"),
        assumed=Examination(severity=0.4),
    ),
    "users who buy": SimulationConfig(
        updates=3, sessions=140, users=Shoppers(), behaviors=SHOP, assumed=Examination(cutoff=4)
    ),
    "lists of several bands": SimulationConfig(
        initial_candidates=(20, 40),
        updates=2,
        sessions=70,
        list_length=27,
        users=PositionBased(Examination(severity=0.5)),
    ),
}


ONLINE = [
    "mgd:features=concate,behavior=ips",
    "pdgd:features=concate,behavior=ips",
    "dbgd:rate=0.7,decay=0.5,step=3.0,features=concate",
    "pdgd:rate=1.5,decay=0.5,features=concate",
    "mgd:candidates=2,step=0.1",
    "mgd:candidates=30",
    "toprank:delta=0.1",
]
VARIANTS = [*variants(), *ONLINE]
MANY_SESSIONS = SimulationConfig(
    entering_probability=0.6,
    initial_candidates=(2, 4),
    warmup_sessions=2,
    updates=3,
    sessions=400,
    list_length=4,
    users=PositionBased(Examination(cutoff=3)),
    assumed=Examination(severity=1.2),
)
QUICK = {*registry.built_in(), "dbgd:features=concate", "pdgd:features=concate"}


@pytest.mark.parametrize(
    "text",
    [text if text in QUICK else pytest.param(text, marks=pytest.mark.slow) for text in VARIANTS],
)
def test_whole_run(text: str) -> None:
    assert_agrees_in("the paper's", text)
    learned = assert_whole_run_agrees(text, MANY_SESSIONS, tiny(seed=1, sizes=(7, 1, 9, 12)))
    assert not isinstance(learned, OnlineReference) or learned.steps > 2
    assert not isinstance(learned, TopRankReference) or len(learned.G) > 5


@pytest.mark.parametrize("text", ["ebrank", "dbgd", "mgd:features=concate"])
def test_equal_scores_are_ordered_by_tie_key(text: str) -> None:
    """Twins have the same features."""
    data = tiny(seed=1, sizes=(7, 1, 9, 12))
    data = replace(data, features=np.repeat(data.features[::2], 2, axis=0)[: data.n_rows])
    assert_whole_run_agrees(text, MANY_SESSIONS, data)


def every_ranker_in_other_worlds() -> Iterator[tuple[str, str]]:
    """Yield each ranker with every other world, in another of its variants every time."""
    others = list(CONFIGS)[1:]
    rankers = itertools.groupby(VARIANTS, lambda text: text.partition(":")[0])
    for number, (_, some) in enumerate(rankers):
        yield from zip(itertools.cycle(some), others[number % 2 :: 2], strict=False)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "world"), list(every_ranker_in_other_worlds()))
def test_whole_run_in_other_worlds(text: str, world: str) -> None:
    assert_agrees_in(world, text)


def assert_agrees_in(world: str, text: str) -> None:
    trial = len(text) % 3
    data = tiny(seed=trial, interleaved=bool(trial))
    assert_whole_run_agrees(text, CONFIGS[world], data, trial=trial, threads=1 + trial)


@pytest.mark.parametrize("users", ["pbm", "dcm:setting=informational"])
@pytest.mark.parametrize("text", ["ebrank", "ucbrank", "oracle"])
def test_whole_run_with_rare_clicks(text: str, users: str) -> None:
    config = SimulationConfig(updates=2, sessions=300, users=parse(users), click_rate=0.15)
    assert_whole_run_agrees(text, config, tiny(seed=8))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("users", "assumed"),
    [
        (Examination(severity=0.3), Examination(severity=2.0)),
        (Examination(cutoff=2), Examination(severity=0.5)),
    ],
    ids=["who look further down", "who do not look at the last rank"],
)
def test_whole_run_in_which_the_curve_is_learned(users: Examination, assumed: Examination) -> None:
    """The log is long enough to tell: what was counted under the mistaken curve is revalued."""
    data = tiny(seed=7, sizes=[8] * 150)
    config = SimulationConfig(
        updates=2, sessions=3000, list_length=3, users=PositionBased(users), assumed=assumed
    )
    learned = assert_whole_run_agrees("auto", config, data).assumed
    assert learned[0] == 1.0
    np.testing.assert_allclose(learned, users([1, 2, 3]), atol=0.05)
    assert (learned[2] == 0.0) == (users.cutoff is not None)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("text", ["ebrank", "random"])
def test_whole_run_of_several_blocks_of_queries(text: str, threads: int) -> None:
    data = tiny(seed=5, sizes=[3 + i % 7 for i in range(150)])
    config = SimulationConfig(updates=2, warmup_sessions=1, sessions=700, list_length=3)
    assert_whole_run_agrees(text, config, data, threads=threads)


@pytest.mark.parametrize("text", ["ebrank", "bm25"])
def test_whole_run_with_many_candidates(text: str) -> None:
    """Long queries: the order is kept by a tournament of several rounds."""
    data = tiny(seed=6, sizes=(70, 129, 33), n_features=2)
    assert_whole_run_agrees(text, SimulationConfig(updates=2), data)
