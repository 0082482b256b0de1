from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ebrank.experiments.exhibits import table3
from ebrank.experiments.framework.experiment import Setup
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset
from ebrank.simulation.result import Result
from tests.experiments.made import result


def weighted(finished: FinishedDataset, weights: list[list[float]]) -> set[str]:
    """Return the verdicts if every ranker had these weights, a list a trial."""
    setup: Setup = finished.setup
    results = {}
    for entrant in table3.runs(setup):
        made = result("bm25", [(0.5, 0.5, 0.5)] * len(weights))
        trials = tuple(
            replace(trial, weights=np.array(each))
            for trial, each in zip(made.trials, weights, strict=True)
        )
        results[entrant] = replace(made, trials=trials)
    findings = table3.outcome(setup, results).findings
    assert len(findings) == 7
    return {finding.verdict for finding in findings}


def test_ratios_of_a_real_run(finished: FinishedDataset) -> None:
    (table,) = finished.outcomes["table3"].tables
    labels = ["CFEpsilon", "CFRandomK", "CFTopK", "DBGD", "MGD", "PDGD", "PRIOR"]
    assert [row.cells[0] for row in table.rows] == labels
    found: Result = finished.results[finished.setup.run("pdgd:features=concate")]
    shares = []
    for trial in found.trials:
        assert trial.weights is not None
        sizes = [abs(weight) for weight in trial.weights.tolist()]
        assert len(sizes) == finished.setup.dataset.n_features + 1
        shares.append((sizes[-1] / sum(sizes), max(sizes[:-1]) / sum(sizes)))
    for place, cell in enumerate(table.rows[5].cells[1:]):
        assert isinstance(cell, Cell)
        assert cell.value == pytest.approx(np.mean([share[place] for share in shares]))
        assert cell.sd == pytest.approx(np.std([share[place] for share in shares], ddof=1))


def test_the_behavior_feature_dominates_or_does_not(finished: FinishedDataset) -> None:
    assert weighted(finished, [[1.0, -2.0, 3.0], [1.0, 2.0, -3.0]]) == {"confirmed"}
    assert weighted(finished, [[1.0, -4.0, 3.0], [1.0, 4.0, -3.0]]) == {"contradicted"}
    assert weighted(finished, [[1.0, -4.0, 3.0], [1.0, 2.0, -2.5]]) == {"undecided"}
    assert weighted(finished, [[1.0, -2.0, 3.0]]) == {"undecided"}, "one trial has no spread"
