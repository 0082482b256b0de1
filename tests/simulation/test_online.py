"""The compiled sessions of DBGD, MGD and PDGD beside slow programs written from the papers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ebrank.data.dataset import Dataset
from ebrank.evidence import Examination
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import run_trial
from ebrank.simulation.users import PositionBased
from tests.simulation.comparison import SEED, assert_same_measures, assert_sessions_agree
from tests.simulation.reference_online import DuelReference, OnlineReference, PairwiseReference
from tests.simulation.tiny import tiny

CONFIGS = {
    "the paper's": SimulationConfig(updates=4, sessions=120),
    "short lists": SimulationConfig(
        entering_probability=0.3,
        initial_candidates=(1, 3),
        warmup_sessions=3,
        updates=3,
        sessions=150,
        list_length=3,
    ),
    "long lists of which few are examined": SimulationConfig(
        updates=3,
        sessions=150,
        list_length=9,
        users=PositionBased(Examination(severity=0.5)),
        believed=Examination(curve=(0.9, 0.0, 0.8, 0.7)),
    ),
}
VARIANTS = [
    "dbgd",
    "mgd",
    "pdgd",
    "dbgd:features=concate",
    "mgd:features=concate",
    "pdgd:features=concate",
    "mgd:features=concate,behavior=ips,learn_from=all,credit=all",
    "pdgd:features=concate,behavior=ips,learn_from=all",
    "dbgd:features=concate,default=mean,learn_from=all",
    "pdgd:features=concate,default=mean",
    "mgd:features=concate,default=mean,behavior=ips",
    "pdgd:features=concate,default=mean,behavior=ips",
    "dbgd:rate=0.7,decay=0.5,step=3.0,features=concate,credit=all",
    "pdgd:rate=1.5,decay=0.5,features=concate",
    "mgd:candidates=2,step=0.1",
    "mgd:candidates=30,learn_from=all",
]


def with_twins(data: Dataset) -> Dataset:
    """Return a dataset in which every other item has the features of the one before: they tie."""
    features = data.features.copy()
    features[1::2] = features[:-1:2]
    return replace(data, features=features)


def reference_of(text: str, data: Dataset, config: SimulationConfig) -> OnlineReference:
    kind = PairwiseReference if text.startswith("pdgd") else DuelReference
    return kind(data, registry.parse(text), config, SEED)


@pytest.mark.parametrize(
    ("text", "twins"),
    [*((text, False) for text in VARIANTS), ("dbgd", True), ("mgd:features=concate", True)],
)
def test_session_by_session(text: str, twins: bool) -> None:
    """With twins, equal scores are ordered by tie key."""
    data = tiny(seed=1, sizes=(7, 1, 9, 12))
    config = SimulationConfig(
        entering_probability=0.6, initial_candidates=(2, 4), warmup_sessions=2, list_length=4
    )
    reference = reference_of(text, with_twins(data) if twins else data, config)
    assert_sessions_agree(reference, 60, updates=(19, 39, 59))
    assert reference.steps > 3


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("text", VARIANTS)
def test_whole_run(text: str, config: str) -> None:
    data = tiny(seed=2)
    got = run_trial(data, registry.parse(text), CONFIGS[config], SEED, 0, threads=1 + len(text) % 3)
    reference = reference_of(text, data, CONFIGS[config])
    reference.run()
    assert reference.steps > 2
    assert got.weights is not None
    np.testing.assert_allclose(got.weights, reference.logging, rtol=1e-10)
    assert_same_measures(replace(got, weights=None), reference)
