"""One small reproduction of everything, really run, that several tests look at."""

from __future__ import annotations

import pytest

import ebrank
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.paper import exhibits
from ebrank.paper.framework import tuning
from ebrank.paper.framework.runner import FinishedDataset, ReproductionPlan
from tests.paper.made import run_plan
from tests.sharing import made_once


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return ebrank.load("mq2007-like", scale=0.02)


@pytest.fixture(scope="session")
def plan() -> ReproductionPlan:
    """Return an order for everything; to save time, UCBRank alone is tuned."""
    given = tuning.read_given(["ebrank:epsilon=30", "ebrank:estimator=exposure,epsilon=20"])
    config = SimulationConfig(sessions=400, updates=4)
    return ReproductionPlan(exhibits.selected(), config, seed=5, trials=2, given=given)


@pytest.fixture(scope="session")
def finished(
    plan: ReproductionPlan, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> FinishedDataset:
    """Return everything, run by one worker; the others take its trials from disk."""
    own: list[FinishedDataset] = []
    trials = made_once(
        tmp_path_factory,
        "trials",
        lambda folder: own.append(run_plan(plan, dataset, folder, jobs=2)),
    )
    return own[0] if own else run_plan(plan, dataset, trials)
