"""The ledger: every figure is the run's, and what was not run says so.

`golden/` has the ledgers of several datasets, with results made by hand.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ebrank
from ebrank.lab.data.dataset import Dataset, Origin
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.paper.framework.display import Finding
from ebrank.paper.framework.entrants import PAPER, TUNED
from ebrank.paper.framework.exhibit import Results, Setup
from ebrank.paper.framework.folds import Fold, RankerByFold
from ebrank.paper.ledger import MARK, compared, ledger
from ebrank.paper.references import variants
from ebrank.paper.report.ledger import ledger_markdown
from tests.golden import check_golden
from tests.paper.made import result, with_trials
from tests.paper.report.sample import document

COMMAND = "ebrank reproduce --gamma 0.9"
GOLDEN = Path(__file__).parent / "golden"
USUAL = SimulationConfig()
SHORT = SimulationConfig(sessions=120, updates=2, warmup_sessions=5)
SOME = ("bm25", "cftopk:features=concate", "ebrank")
FINDING = Finding("x", "it holds", "undecided", "it may not", "Claims", "it")
MQ2007, MQ2008 = Origin("MQ2007", fold=1), Origin("MQ2008", fold=1)
ODD = replace(MQ2007, differences=("MQ2007 (train): 2 queries, expected 1,017",))


@pytest.fixture(scope="module")
def data() -> Dataset:
    return ebrank.load("mq2007-like", scale=0.01)


def prepared(data: Dataset, config: SimulationConfig, epsilons: tuple[float, ...]) -> Setup:
    """Return a setup with these ε, one for each fold if there are several."""
    chosen: dict[Any, Any] = {}
    for key in TUNED:
        rankers = [registry.parse(key).with_parameters(epsilon=each) for each in epsilons]
        chosen[key, config] = rankers[0] if len(rankers) == 1 else RankerByFold(tuple(rankers))
    first = Fold.of(data, config)
    folds = tuple(
        replace(first, number=n, queries=1600 + 50 * n, sessions=1000 * n)
        for n in range(1, len(epsilons) + 1)
    )
    pooled = folds if len(folds) > 1 else ()
    return Setup(data, config, seed=1, trials=2, chosen=chosen, folds=pooled)


def made(setup: Setup, keys: tuple[str, ...] | None) -> Results:
    """Return results of some entrants, or of all and the ledger's variants."""
    runs = [setup.run(key) for key in keys or [entrant.key for entrant in PAPER]]
    if keys is None:
        runs += [variant.run(setup) for variant in variants(setup.dataset.origin)]
    return {
        run: with_trials(
            result("bm25", [(0.5, 0.6, 0.7), (0.51, 0.64, 0.701)], seed=place),
            weights=[[0.1, -0.4, 0.5], [0.2, -0.3, 0.5]],
        )
        for place, run in enumerate(runs)
    }


@pytest.mark.parametrize(
    ("name", "changes", "config", "epsilons", "keys"),
    [
        ("stand-in", {}, SHORT, (7.0,), SOME),
        ("nothing-run", {"origin": Origin("mq2007-like", preset=True)}, USUAL, (7.0,), ()),
        ("mq2007", {"origin": MQ2007}, USUAL, (7.0,), None),
        ("mq2008", {"origin": MQ2008}, USUAL, (0.0,), None),
        ("folds", {"origin": MQ2008}, USUAL, (5.0, 20.0, 20.0), SOME),
        # no name makes other data comparable
        ("own", {"origin": None, "name": "MQ2007"}, USUAL, (7.0,), SOME),
        ("not-as-published", {"origin": ODD, "name": "MQ2007"}, USUAL, (7.0,), SOME),
    ],
)
def test_the_ledger_of(
    name: str,
    changes: dict[str, Any],
    config: SimulationConfig,
    epsilons: tuple[float, ...],
    keys: tuple[str, ...] | None,
    data: Dataset,
) -> None:
    setup = prepared(replace(data, **changes), config, epsilons)
    results = made(setup, keys) if keys != () else {}
    findings = [replace(FINDING, verdict="confirmed", ours=True), FINDING]
    sections = ledger(COMMAND, setup, results, findings if name == "stand-in" else ())
    text = ledger_markdown(document(name=setup.name, ledger=sections))
    check_golden(GOLDEN / f"{name}.md", text)


@pytest.mark.parametrize(
    ("reference", "ours", "sd", "digits", "marked"),
    [
        (0.500, 0.520, 0.0101, 3, False),  # less than two deviations
        (0.500, 0.520, 0.0099, 3, True),
        (0.520, 0.500, 0.0099, 3, True),
        (0.500, 0.5049, 0.0001, 3, False),  # too small to matter
        (150.0, 150.9, 0.1, 1, False),
        (150.0, 151.1, 0.1, 1, True),
        (0.500, 0.520, None, 3, True),  # one trial
        (None, 0.520, 0.001, 3, False),
        (0.500, None, None, 3, False),
    ],
)
def test_a_difference_beyond_the_spread_is_marked(
    reference: float | None, ours: float | None, sd: float | None, digits: int, marked: bool
) -> None:
    trials = [0.0] if sd is None else [-sd, 0.0, sd]
    values = None if ours is None else np.array(trials) + ours
    difference = compared(reference, values, digits)[-1]
    assert difference.marks == (MARK if marked else "")
