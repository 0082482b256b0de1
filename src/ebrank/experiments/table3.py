"""Table 3: how much the learned linear models lean on the behavior feature (eq:weightRatio)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.evaluation.metrics import behavior_and_other
from ebrank.experiments.lineup import CONCATENATING, Entrant
from ebrank.experiments.measures import cell, printed
from ebrank.experiments.outcome import Column, Finding, Outcome, Row, Table
from ebrank.experiments.run import Experiment, Results, Run, Setup
from ebrank.simulation.result import Result

DOMINANCE = "The behavior feature outweighs every other"
ORDER = sorted(CONCATENATING, key=lambda one: one.label)
"""As the paper lists them."""


def runs(setup: Setup) -> list[Run]:
    """Return the rankers that concatenate x^b."""
    return [setup.run(one.key) for one in ORDER]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return the table, and whether x^b dominates."""
    found = {one: ratios(results[setup.run(one.key)]) for one in ORDER}
    table = Table(
        "table3",
        "Exploitation ratios",
        "Share of a feature's weight in the sum of all absolute weights of the last model: that of "
        "the behavior feature x^b, and the largest of all others; mean of the trials.",
        (Column("ranker"), Column("x^b"), Column("largest other")),
        tuple(
            Row((one.label, cell(values[:, 0]), cell(values[:, 1])))
            for one, values in found.items()
        ),
    )
    findings = tuple(_finding(one, values) for one, values in found.items())
    return Outcome(tables=(table,), findings=findings)


def ratios(result: Result) -> npt.NDArray[np.float64]:
    """Return the ratio of x^b and the largest other one, shape (trials, 2)."""
    return np.array(
        [behavior_and_other(trial.weights) for trial in result.trials if trial.weights is not None]
    )


def _finding(one: Entrant, values: npt.NDArray[np.float64]) -> Finding:
    behavior, other = values.mean(axis=0)
    return Finding(
        f"behavior-dominates-{one.style}",
        f"{one.label} gives x^b a larger weight than any other feature",
        bool(behavior > other),
        f"ratio {printed(behavior, 3)} of x^b, {printed(other, 3)} of the largest other",
        DOMINANCE,
        one.label,
    )


EXPERIMENT = Experiment("table3", "Table 3: exploitation ratios", outcome, runs)
