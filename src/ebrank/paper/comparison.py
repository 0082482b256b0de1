"""Any rankers side by side: significant differences as letters, and the measures over time.

Fisher's randomization test compares all pairs, for each measure separately, and Holm's method
adjusts the p-values over all pairs. Two rankers that share a letter do not differ significantly;
`a` is the letter of the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from ebrank.lab.evaluation.letters import letters
from ebrank.lab.evaluation.significance import (
    ADDS_UP,
    fisher_randomization,
    holm,
    query_differences,
)
from ebrank.lab.simulation.result import Result, summary
from ebrank.paper.framework import measures
from ebrank.paper.framework.display import Column, Figure, Row, Table
from ebrank.paper.framework.entrants import Entrant
from ebrank.paper.framework.measures import MEASURES, Measure
from ebrank.paper.framework.significance import LEVEL

CAPTION = (
    "Rankers that share a letter do not differ significantly (Fisher's randomization test over "
    f"test queries, Holm-adjusted p < {LEVEL:g})."
)


class Pair(NamedTuple):
    """By how much one ranker exceeds another, and its p-value, adjusted over all pairs."""

    metric: str
    a: str
    b: str
    difference: float
    p_value: float


@dataclass(frozen=True)
class Comparison:
    """Rankers that met the same users, compared.

    Attributes:
        results: of the rankers, in the order they were given.
        pairs: all of them, measure by measure.
        letters: of each ranker (inner) by each measure (outer).
    """

    results: tuple[Result, ...]
    pairs: tuple[Pair, ...]
    letters: tuple[tuple[str, ...], ...]


def compared(results: Sequence[Result]) -> Comparison:
    """Compare rankers that met the same users: two or more."""
    by_measure = {measure: _pairs(results, measure) for measure in MEASURES}
    return Comparison(
        tuple(results),
        tuple(pair for own in by_measure.values() for pair in own),
        tuple(_letters(results, measure, own) for measure, own in by_measure.items()),
    )


def _pairs(results: Sequence[Result], measure: Measure) -> list[Pair]:
    """Return all pairs, in the order of `combinations`."""
    both, metric = list(combinations(results, 2)), measure.metric
    differences = [query_differences(a, b, metric) for a, b in both]
    totals = (each.sum() if metric in ADDS_UP else each.mean() for each in differences)
    p_values = holm([fisher_randomization(each) for each in differences])
    return [
        Pair(metric, a.ranker, b.ranker, float(total), float(p))
        for (a, b), total, p in zip(both, totals, p_values, strict=True)
    ]


def _letters(results: Sequence[Result], measure: Measure, pairs: Sequence[Pair]) -> tuple[str, ...]:
    """Return a letter or more for each ranker; none by a measure that a trial does not have."""
    means = [measure.mean(result) for result in results]
    if not all(map(math.isfinite, means)):
        return ("",) * len(results)
    indices = combinations(range(len(results)), 2)
    different = {index for index, pair in zip(indices, pairs, strict=True) if pair.p_value < LEVEL}
    return tuple(letters(means, different))


def table(comparison: Comparison) -> Table:
    """Return means, deviations and letters; the highest mean of each column is the best."""
    results = comparison.results
    by_ranker = ([f" {letter}" for letter in own] for own in zip(*comparison.letters, strict=True))
    rows = tuple(
        Row((result.ranker, *measures.compared_cells(result, results, marks)))
        for result, marks in zip(results, by_ranker, strict=True)
    )
    title = f"Comparison on {results[0].dataset}"
    caption = f"{measures.mean_of(results).capitalize()}. {CAPTION}"
    return Table("compare", title, caption, (Column("ranker"), *measures.COLUMNS), rows)


def figure(comparison: Comparison) -> Figure:
    """Return the measures over time, a line for each ranker."""
    results = comparison.results
    return measures.figure_over_time(
        "compare",
        f"Comparison on {results[0].dataset}",
        f"{measures.averaged(len(results[0].trials), measures.AT_UPDATES, measures.BANDS)}.",
        dict(zip(_as_entrants([result.ranker for result in results]), results, strict=True)),
    )


def _as_entrants(rankers: Sequence[str]) -> list[Entrant]:
    """Return how rankers are drawn, each in its own color: the first of a name in its own."""
    names = [ranker.partition(":")[0] for ranker in rankers]
    first = {name: names.index(name) for name in names}
    return [
        Entrant(ranker, ranker, "", name if first[name] == place else f"{place} {ranker}")
        for place, (ranker, name) in enumerate(zip(rankers, names, strict=True))
    ]


def plain(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as plain objects, for JSON."""
    metrics, first = [measure.metric for measure in MEASURES], comparison.results[0]
    lettered = zip(comparison.results, zip(*comparison.letters, strict=True), strict=True)
    return {
        "dataset": first.dataset,
        "seed": first.seed,
        "trials": len(first.trials),
        "rankers": [
            {
                "ranker": each.ranker,
                **summary(each),
                "letters": dict(zip(metrics, own, strict=True)),
            }
            for each, own in lettered
        ],
        "pairs": [pair._asdict() for pair in comparison.pairs],
    }
