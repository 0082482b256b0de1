"""Any rankers side by side: significant differences as letters, and the measures over time.

Fisher's randomization test compares all pairs, for each measure separately, and Holm's method
adjusts the p-values over all pairs. Two rankers that share a letter do not differ significantly;
`a` is the letter of the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from ebrank.errors import ParameterError
from ebrank.evaluation.letters import letters
from ebrank.evaluation.significance import compare, holm
from ebrank.experiments.framework.entrants import (
    CONTENDERS,
    EBRANK,
    ENTRANTS,
    EXPOSURE,
    Entrant,
    entrant_of,
)
from ebrank.experiments.framework.measures import (
    AT_UPDATES,
    BANDS,
    COLUMNS,
    MEASURES,
    Measure,
    averaged,
    cells,
    figure_over_time,
    mean_of,
)
from ebrank.experiments.framework.outcome import Column, Figure, Row, Table
from ebrank.experiments.framework.significance import LEVEL
from ebrank.simulation.result import Result, summary

CAPTION = (
    "Rankers that share a letter do not differ significantly (Fisher's randomization test over "
    f"test queries, Holm-adjusted p < {LEVEL:g})."
)


@dataclass(frozen=True)
class Pair:
    """Two rankers by one measure.

    Attributes:
        metric: the measure's name in `Result`.
        a, b: the rankers.
        difference: by how much the mean of `a` exceeds that of `b`.
        p_value: adjusted over all pairs.
    """

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
        pairs: all pairs of rankers, by each measure.
        letters: of each ranker (inner) by each measure (outer).
    """

    results: tuple[Result, ...]
    pairs: tuple[Pair, ...]
    letters: tuple[tuple[str, ...], ...]


def compared(results: Sequence[Result]) -> Comparison:
    """Compare rankers that met the same users."""
    if len(results) < 2:
        raise ParameterError("a comparison needs at least two rankers; name another one")
    pairs = {measure: _pairs(results, measure) for measure in MEASURES}
    return Comparison(
        tuple(results),
        tuple(pair for own in pairs.values() for pair in own),
        tuple(_letters(results, measure, own) for measure, own in pairs.items()),
    )


def _pairs(results: Sequence[Result], measure: Measure) -> list[Pair]:
    """Return all pairs, in the order of `combinations`."""
    tests = [compare(a, b, measure.metric) for a, b in combinations(results, 2)]
    adjusted = holm([test.p_value for test in tests])
    return [
        Pair(test.metric, test.a, test.b, test.difference, float(p))
        for test, p in zip(tests, adjusted, strict=True)
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
    columns = []
    measured = zip(*map(cells, results), strict=True)
    for measure, own, own_letters in zip(MEASURES, measured, comparison.letters, strict=True):
        highest = max(measure.mean(result) for result in results)
        columns.append(
            [
                replace(each, best=each.value == highest, marks=f" {marks}")
                for each, marks in zip(own, own_letters, strict=True)
            ]
        )
    rows = zip((result.ranker for result in results), *columns, strict=True)
    title = f"Comparison on {results[0].dataset}"
    caption = f"{mean_of(results).capitalize()}. {CAPTION}"
    return Table("compare", title, caption, (Column("ranker"), *COLUMNS), tuple(map(Row, rows)))


def figure(comparison: Comparison) -> Figure:
    """Return the measures over time, a line for each ranker."""
    results = comparison.results
    return figure_over_time(
        "compare",
        f"Comparison on {results[0].dataset}",
        f"{averaged(len(results[0].trials), AT_UPDATES, BANDS)}.",
        dict(zip(_as_entrants([result.ranker for result in results]), results, strict=True)),
    )


def _as_entrants(rankers: Sequence[str]) -> list[Entrant]:
    """Return how rankers are drawn, each in its own color.

    The first is drawn like the entrant that differs only in parameters, if there is one.
    """
    taken: set[str] = set()
    entrants = []
    for ranker in rankers:
        style = _style(ranker)
        if style in taken:
            style = ranker
        taken.add(style)
        entrants.append(Entrant(ranker, ranker, "", style))
    return entrants


def _style(ranker: str) -> str:
    """Return the entrant whose look a ranker shares, or the ranker itself."""
    name = ranker.partition(":")[0]
    if name == EBRANK and "estimator=exposure" in ranker:
        return entrant_of(EXPOSURE).style
    everyone = (*ENTRANTS, *CONTENDERS)
    styles = {entrant.key.partition(":")[0]: entrant.style for entrant in reversed(everyone)}
    return styles.get(name, ranker)


def plain(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as plain objects, for JSON."""
    rankers = []
    for index, result in enumerate(comparison.results):
        own = zip(MEASURES, comparison.letters, strict=True)
        by_metric = {measure.metric: letters[index] for measure, letters in own}
        rankers.append({"ranker": result.ranker, **summary(result), "letters": by_metric})
    first = comparison.results[0]
    return {
        "dataset": first.dataset,
        "seed": first.seed,
        "trials": len(first.trials),
        "rankers": rankers,
        "pairs": [vars(pair) for pair in comparison.pairs],
    }
