"""Any rankers side by side: who differs from whom beyond luck, as letters, and how it came about.

All pairs are compared by Fisher's randomization test, for each measure on its own, and the p-values
adjusted by Holm's method over all pairs. Two rankers that share a letter do not differ
significantly; `a` is the letter of the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from ebrank.errors import ParameterError
from ebrank.evaluation.letters import letters
from ebrank.evaluation.significance import compare, holm
from ebrank.experiments.contest import LEVEL
from ebrank.experiments.lineup import EBRANK, ENTRANTS, EXPOSURE, Entrant, entrant
from ebrank.experiments.measures import (
    AT_UPDATES,
    BANDS,
    MEASURES,
    Measure,
    averaged,
    cell,
    over_time,
    panels,
)
from ebrank.experiments.outcome import Column, Figure, Row, Series, Table
from ebrank.simulation.result import Result
from ebrank.simulation.summary import summary

CAPTION = (
    "Rankers that share a letter do not differ significantly (Fisher's randomization test over "
    f"test queries, Holm-adjusted p < {LEVEL:g})."
)


@dataclass(frozen=True)
class Pair:
    """Two rankers by one measure.

    Attributes:
        metric: what `Result` calls the measure.
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
        pairs: every two of them, by each measure.
        letters: of each ranker (inner) by each measure (outer).
    """

    results: tuple[Result, ...]
    pairs: tuple[Pair, ...]
    letters: tuple[tuple[str, ...], ...]


def compared(results: Sequence[Result]) -> Comparison:
    """Return how some rankers compare that met the same users."""
    if len(results) < 2:
        raise ParameterError("a comparison needs two rankers or more")
    pairs = [_pairs(results, measure) for measure in MEASURES]
    told = (_letters(results, each, of) for each, of in zip(MEASURES, pairs, strict=True))
    return Comparison(tuple(results), tuple(pair for of in pairs for pair in of), tuple(told))


def _pairs(results: Sequence[Result], measure: Measure) -> list[Pair]:
    """Return all pairs, in the order of `combinations`."""
    found = [compare(a, b, measure.metric) for a, b in combinations(results, 2)]
    adjusted = holm([one.p_value for one in found])
    return [
        Pair(one.metric, one.a, one.b, one.difference, float(p))
        for one, p in zip(found, adjusted, strict=True)
    ]


def _letters(results: Sequence[Result], measure: Measure, pairs: Sequence[Pair]) -> tuple[str, ...]:
    places = combinations(range(len(results)), 2)
    different = {place for place, pair in zip(places, pairs, strict=True) if pair.p_value < LEVEL}
    return tuple(letters([measure.mean(result) for result in results], different))


def table(found: Comparison) -> Table:
    """Return means, deviations and letters; the highest mean of each column is the best."""
    columns = []
    for measure, told in zip(MEASURES, found.letters, strict=True):
        cells = [cell(measure.of(result), measure.digits) for result in found.results]
        highest = max(measure.mean(result) for result in found.results)
        columns.append(
            [
                replace(one, best=one.value == highest, marks=f" {own}")
                for one, own in zip(cells, told, strict=True)
            ]
        )
    rows = zip((result.ranker for result in found.results), *columns, strict=True)
    titles = ("ranker", *(measure.title for measure in MEASURES))
    first = found.results[0]
    title = f"Comparison on {first.dataset}"
    caption = f"{averaged(len(first.trials), spread=' ± standard deviation')}. {CAPTION}"
    return Table(
        "compare", title, caption, tuple(map(Column, titles)), tuple(Row(cells) for cells in rows)
    )


def figure(found: Comparison) -> Figure:
    """Return the measures over time, a line for each ranker."""

    def lines(measure: Measure) -> tuple[Series, ...]:
        return tuple(over_time(_drawn(one.ranker), one, measure) for one in found.results)

    return Figure(
        "compare",
        f"Comparison on {found.results[0].dataset}",
        f"{averaged(len(found.results[0].trials), AT_UPDATES, BANDS)}.",
        panels("sessions", lines, MEASURES),
    )


def _drawn(ranker: str) -> Entrant:
    """Return how a ranker is drawn: like the entrant that it is but for parameters, if any."""
    name = ranker.partition(":")[0]
    if name == EBRANK and "estimator=exposure" in ranker:
        return replace(entrant(EXPOSURE), label=ranker)
    styles = {one.key.partition(":")[0]: one.style for one in reversed(ENTRANTS)}
    return Entrant(ranker, ranker, "", styles.get(name, ranker))


def plain(found: Comparison) -> dict[str, Any]:
    """Return the comparison as plain objects, for JSON."""
    rankers = []
    for place, result in enumerate(found.results):
        told = {
            measure.metric: of[place] for measure, of in zip(MEASURES, found.letters, strict=True)
        }
        rankers.append({"ranker": result.ranker, **summary(result), "letters": told})
    first = found.results[0]
    return {
        "dataset": first.dataset,
        "seed": first.seed,
        "trials": len(first.trials),
        "rankers": rankers,
        "pairs": [vars(pair) for pair in found.pairs],
    }
