from __future__ import annotations

import pytest

import ebrank
from ebrank.data.dataset import Origin
from ebrank.experiments.framework.entrants import TUNED
from ebrank.experiments.framework.experiment import Setup
from ebrank.experiments.ledger import references
from ebrank.experiments.ledger.references import AS_RELEASED, VARIANTS, Variant, variants
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig


@pytest.fixture(scope="module")
def setup() -> Setup:
    """Return a setup in which every ε was chosen to be 7."""
    chosen = {
        (key, SimulationConfig()): registry.parse(f"{key}{',' if ':' in key else ':'}epsilon=7")
        for key in TUNED
    }
    return Setup(ebrank.load("mq2007-like", scale=0.01), SimulationConfig(), chosen=chosen)


def test_variants_share_the_chosen_epsilon(setup: Setup) -> None:
    texts = [str(variant.run(setup).ranker) for variant in VARIANTS]
    assert texts == [
        "ebrank:epsilon=7,estimator=exposure",
        "ebrank:epsilon=7,min_impressions=20",
        "ebrank:epsilon=7,estimator=exposure,min_impressions=20",
        "dbgd:features=concate,behavior=ips",
        "mgd:features=concate,behavior=ips",
        "pdgd:features=concate,behavior=ips",
        "cftopk:behavior=ips,features=concate",
        "cfrandomk:behavior=ips,features=concate",
        "cfepsilon:behavior=ips,features=concate",
        "prior:behavior=ips",
        "ucbrank:behavior=ips,epsilon=7",
    ]


@pytest.mark.parametrize("variant", AS_RELEASED, ids=lambda variant: variant.name)
def test_variants_as_released_have_their_own_epsilon(setup: Setup, variant: Variant) -> None:
    assert variant.run(setup).ranker == registry.parse(variant.key)
    (against,) = variant.against
    theirs = registry.parse(against)
    assert variant.run(setup).ranker.value("epsilon") == theirs.value("epsilon")


@pytest.mark.parametrize(
    "origin",
    [
        Origin("mq2007-like", preset=True),
        Origin("mslr10k-like", preset=True),
        Origin("MQ2008", fold=1),
        Origin("MSLR-WEB30K", fold=1),
    ],
)
def test_every_variant_has_a_reference(origin: Origin) -> None:
    theirs = references.reference_for(origin)
    assert theirs is not None
    for variant in variants(origin):
        meant = {*variant.against, *(f"{one}:epsilon=0.0" for one in variant.against)}
        assert meant & theirs.performance.keys(), variant.name
