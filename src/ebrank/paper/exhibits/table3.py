"""Table 3: how much the learned linear models lean on the behavior feature (eq:weightRatio)."""

from __future__ import annotations

from ebrank.paper.framework.display import Column, Display, Effect, Finding, Row, Table
from ebrank.paper.framework.entrants import CONCATENATING, Entrant
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, NamedRuns, Setup
from ebrank.paper.framework.measures import behavior_ratios, cell
from ebrank.paper.framework.numbers import number
from ebrank.paper.framework.significance import over_trials
from ebrank.typing import Floats

DOMINANCE = "Clicks outweigh every other feature"
ORDER = sorted(CONCATENATING, key=lambda entrant: entrant.label)
"""As the paper lists them."""


def runs(setup: Setup) -> NamedRuns:
    """Return the rankers that concatenate x^b."""
    return {entrant: setup.run(entrant.key) for entrant in ORDER}


def display(setup: Setup, results: NamedResults) -> Display:
    """Return the table, and whether x^b dominates."""
    ratios = {entrant: behavior_ratios(result) for entrant, result in results.items()}
    table = Table(
        "table3",
        "Exploitation ratios",
        "Share of a feature's weight in the sum of all absolute weights of the last model: that of "
        "the behavior feature x^b, and the largest of all others; mean of the trials.",
        (Column("ranker"), Column("x^b"), Column("largest other")),
        tuple(
            Row((entrant.label, cell(values[:, 0]), cell(values[:, 1])))
            for entrant, values in ratios.items()
        ),
    )
    findings = tuple(_finding(entrant, values) for entrant, values in ratios.items())
    return Display(tables=(table,), findings=findings)


def _finding(entrant: Entrant, values: Floats) -> Finding:
    behavior, other = values.mean(axis=0)
    more = over_trials(values[:, 0] - values[:, 1])
    return Finding(
        f"behavior-dominates-{entrant.style}",
        f"{entrant.label} gives clicks a larger weight than any other feature",
        more.verdict,
        f"{number(behavior, 3)} for clicks, {number(other, 3)} for the largest other; "
        "Student's test over trials",
        DOMINANCE,
        entrant.label,
        effect=Effect(more.difference, more.low, more.high, "share of the weights"),
    )


EXHIBIT = Exhibit("table3", display, runs)
