"""Figure: is every part of EBRank needed? Without exploration; the prior alone; behavior alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ebrank.experiments.contest import LEVEL, in_words, pairwise
from ebrank.experiments.lineup import EBRANK, EXPOSURE, Entrant, entrant
from ebrank.experiments.measures import (
    BANDS,
    CUM,
    MEASURES,
    WARM,
    Measure,
    averaged,
    cells,
    over_time,
    panels,
)
from ebrank.experiments.outcome import Column, Figure, Finding, Outcome, Row, Series, Table
from ebrank.experiments.run import Experiment, Results, Run, Setup
from ebrank.simulation.result import Result


@dataclass(frozen=True, eq=False)
class Part:
    """EBRank without something.

    Attributes:
        lacks: the part that is missing, as findings call it.
        label: what the paper calls the rest.
        style: the line's look.
        changes: the parameters that take the part away.
    """

    lacks: str
    label: str
    style: str
    changes: dict[str, Any] = field(default_factory=dict)


ITSELF = (
    "the chosen ε is 0: there is no exploration to take away, and EBRank is compared with itself"
)
NEEDED = "EBRank needs each of its parts"
FULL = Part("nothing", "full", "ebrank")
EXPLORATION = Part("exploration", "w/o exploration", "without-exploration", {"epsilon": 0.0})
PARTS = (
    EXPLORATION,
    Part("behavior", "only prior", "only-prior", {"part": "prior"}),
    Part("prior", "only behavior", "only-behavior", {"part": "behavior"}),
)


def runs(setup: Setup) -> list[Run]:
    """Return both estimators, whole and in part."""
    return [setup.run(key, **part.changes) for key in (EBRANK, EXPOSURE) for part in (FULL, *PARTS)]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return a figure and a table for both estimators."""
    found = {
        one: {part: results[setup.run(one.key, **part.changes)] for part in (FULL, *PARTS)}
        for one in map(entrant, (EBRANK, EXPOSURE))
    }
    return Outcome(
        tables=(table(found),),
        figures=tuple(figure(one, parts) for one, parts in found.items()),
        findings=tuple(finding for one, parts in found.items() for finding in findings(one, parts)),
    )


def figure(one: Entrant, parts: dict[Part, Result]) -> Figure:
    """Return an estimator's parts over time."""

    def lines(measure: Measure) -> tuple[Series, ...]:
        return tuple(
            over_time(_drawn(one, part), result, measure) for part, result in parts.items()
        )

    trials = len(parts[FULL].trials)

    return Figure(
        "ablation" if one.key == EBRANK else "ablation-exposure",
        f"Ablation of {one.label}",
        "Without the exploration bonus, by the prior alone, by behavior alone. "
        f"{averaged(trials, spread=BANDS)}.",
        panels("sessions", lines, MEASURES),
    )


def _drawn(one: Entrant, part: Part) -> Entrant:
    if part is FULL:
        return one
    return Entrant(one.key, part.label, one.setting, part.style)


def table(found: dict[Entrant, dict[Part, Result]]) -> Table:
    """Return the figures at the end, with the significance of what each part adds."""
    p_columns = [Column(f"p, {measure.title}") for measure in (WARM, CUM)]
    rows = []
    for one, parts in found.items():
        compared = {measure: _against_full(parts, measure) for measure in (WARM, CUM)}
        for part, result in parts.items():
            p_values = [
                _bare(compared[measure][part.label][1]) if part is not FULL else ""
                for measure in (WARM, CUM)
            ]
            rows.append(Row((part.label, *cells(result), *p_values), group=one.label))
    itself = "".join(
        f" {one.label}: {ITSELF}." for one, parts in found.items() if _explores_nothing(parts)
    )
    return Table(
        "ablation",
        "Ablation",
        "p: of the full model's lead over the part, by Fisher's randomization test, adjusted by "
        f"Holm's method over the three parts.{itself}",
        (Column("part"), *(Column(measure.title) for measure in MEASURES), *p_columns),
        tuple(rows),
    )


def _bare(p_value: float) -> str:
    """Return a p-value as it stands under a heading that says what it is.

    >>> _bare(0.0312), _bare(0.0)
    ('.0312', '< .0001')
    """
    return in_words(p_value).removeprefix("p ").removeprefix("= ")


def findings(one: Entrant, parts: dict[Part, Result]) -> Iterator[Finding]:
    """Yield whether the full model is significantly better than without each part."""
    compared = {measure: _against_full(parts, measure) for measure in (WARM, CUM)}
    for part in PARTS:
        leads = {measure: compared[measure][part.label] for measure in (WARM, CUM)}
        told = ", ".join(
            f"{measure.text(gain, '+')} in {measure.title} ({in_words(p_value)})"
            for measure, (gain, p_value) in leads.items()
        )
        yield Finding(
            f"{one.style}-needs-{part.lacks}",
            f"{one.label} needs its {part.lacks}: it is significantly better in Warm- and Cum-NDCG "
            f"than {part.label}",
            all(gain > 0 and p_value < LEVEL for gain, p_value in leads.values()),
            ITSELF if part is EXPLORATION and _explores_nothing(parts) else told,
            NEEDED,
            f"{part.lacks} of {one.label}",
        )


def _explores_nothing(parts: dict[Part, Result]) -> bool:
    """Return whether the full model is the very run that lacks exploration."""
    return parts[FULL] is parts[EXPLORATION]


def _against_full(parts: dict[Part, Result], measure: Measure) -> dict[str, tuple[float, float]]:
    pairs = {part.label: (parts[FULL], parts[part]) for part in PARTS}
    return pairwise(pairs, measure)


EXPERIMENT = Experiment(
    "ablation", "Figure: ablation of EBRank", outcome, runs, tuned=(EBRANK, EXPOSURE)
)
