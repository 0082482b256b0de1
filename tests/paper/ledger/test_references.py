"""The reference figures: their sums, what such figures must be, and which datasets have them."""

from __future__ import annotations

import pytest

import ebrank
from ebrank.lab.data.dataset import Origin
from ebrank.lab.data.presets import PRESETS
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.paper import references
from ebrank.paper.framework.entrants import TUNED
from ebrank.paper.framework.exhibit import Setup
from ebrank.paper.references import (
    AS_RELEASED,
    REFERENCES,
    VARIANTS,
    Statistics,
)


def test_column_sums() -> None:
    """A slip of the pen would show; the figures were read from the paper's source once."""
    sums = {
        name: [
            round(sum(getattr(figures, metric) for figures in each.performance.values()), 3)
            for metric in ("cold", "warm", "cum")
        ]
        for name, each in REFERENCES.items()
    }
    assert sums == {
        "MQ2007": [8.507, 10.738, 1997.37],
        "MSLR-10K": [7.503, 8.971, 1694.56],
        "MSLR-30K": [7.549, 9.102, 1715.75],
        "MQ2008": [10.377, 12.413, 2411.3],
    }
    ratios = REFERENCES["MQ2007"].ratios.values()
    columns = zip(*(vars(ratio).values() for ratio in ratios), strict=True)
    assert [round(sum(column), 3) for column in columns] == [3.107, 0.441, 0.522, 0.181]
    released = REFERENCES["MQ2008"].ratios.values()
    assert round(sum(ratio.behavior for ratio in released), 3) == 3.187


def test_every_embedded_dataset_but_one_stands_in_for_one_of_the_paper() -> None:
    *imitations, ours = PRESETS.values()
    assert references.reference_for(Origin(ours.name, preset=True)) is None
    names = [preset.name for preset in imitations]
    assert dict(references.STAND_INS) == dict(zip(names, references.DATASETS, strict=True))
    for preset in imitations:
        found = references.reference_for(Origin(preset.name, preset=True))
        assert found is not None
        assert found.statistics == Statistics(
            preset.queries, preset.mean_candidates, preset.n_features, preset.max_label
        )


@pytest.mark.parametrize(
    ("origin", "published"),
    [
        (Origin("MQ2007", fold=1), "MQ2007"),
        (Origin("MQ2007", fold=2), "MQ2007"),
        (Origin("MQ2007", fold=1, differences=("another size",)), None),
        (Origin("MQ2007", preset=True), None),
        (Origin("MQ2008"), "MQ2008"),
        (Origin("MSLR-WEB10K"), "MSLR-10K"),
        (Origin("MSLR-WEB30K"), "MSLR-30K"),
        (Origin("mslr30k-like", preset=True, scale=0.05), "MSLR-30K"),
        (Origin("mslr30k-like"), None),
        (None, None),
    ],
)
def test_which_figures_a_dataset_is_compared_with(
    origin: Origin | None, published: str | None
) -> None:
    found = references.reference_for(origin)
    assert (found and found.dataset) == published


# --- variants ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def setup() -> Setup:
    """Return a setup in which every ε was chosen to be 7."""
    chosen = {
        (key, SimulationConfig()): registry.parse(f"{key}{',' if ':' in key else ':'}epsilon=7")
        for key in TUNED
    }
    return Setup(ebrank.load("mq2007-like", scale=0.01), SimulationConfig(), chosen=chosen)


def test_variants_share_the_chosen_epsilon_unless_they_are_as_released(setup: Setup) -> None:
    texts = [str(variant.run(setup).ranker) for variant in VARIANTS]
    assert texts == [
        "ebrank:epsilon=7,estimator=exposure",
        "ebrank:epsilon=7,min_impressions=20",
        "ebrank:epsilon=7,estimator=exposure,min_impressions=20",
        *(f"{name}:features=concate,behavior=ips" for name in ("dbgd", "mgd", "pdgd")),
        *(f"cf{name}:behavior=ips,features=concate" for name in ("topk", "randomk", "epsilon")),
        "prior:behavior=ips",
        "ucbrank:behavior=ips,epsilon=7",
    ]
    for variant in AS_RELEASED:
        ranker, (against,) = variant.run(setup).ranker, variant.against
        assert ranker == registry.parse(variant.key)
        assert ranker.value("epsilon") == registry.parse(against).value("epsilon")
