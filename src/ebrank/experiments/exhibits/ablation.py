"""Figure: is every part of EBRank needed? Without exploration; the prior alone; behavior alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, Entrant, entrant_of
from ebrank.experiments.framework.experiment import Experiment, Results, Run, Setup
from ebrank.experiments.framework.measures import (
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
from ebrank.experiments.framework.numbers import p_text
from ebrank.experiments.framework.outcome import (
    Column,
    Figure,
    Finding,
    Outcome,
    Row,
    Series,
    Table,
)
from ebrank.experiments.framework.significance import Contrast, pairwise
from ebrank.simulation.result import Result


@dataclass(frozen=True, eq=False)
class Part:
    """EBRank without something.

    Attributes:
        lacks: the missing part.
        needed: the end of the claim that the full model is better.
        label: what the paper calls the rest.
        style: the line's look.
        changes: the parameters that remove the part.
    """

    lacks: str
    needed: str
    label: str
    style: str
    changes: dict[str, Any] = field(default_factory=dict)


ITSELF = (
    "the chosen ε is 0: there is no exploration to take away, and EBRank is compared with itself"
)
NEEDED = "EBRank needs each of its parts"
FULL = Part("nothing", "", "full", "ebrank")
EXPLORATION = Part(
    *("exploration", "with exploration than without"),
    *("w/o exploration", "without-exploration"),
    {"epsilon": 0.0},
)
PARTS = (
    EXPLORATION,
    Part(
        *("behavior", "with clicks than by its prior alone"),
        *("only prior", "only-prior"),
        {"part": "prior"},
    ),
    Part(
        *("prior", "with its prior than by clicks alone"),
        *("only behavior", "only-behavior"),
        {"part": "behavior"},
    ),
)


def runs(setup: Setup) -> list[Run]:
    """Return both estimators, complete and without each part."""
    return [setup.run(key, **part.changes) for key in (EBRANK, EXPOSURE) for part in (FULL, *PARTS)]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return a figure and a table for both estimators."""
    results_by_entrant = {
        entrant: {part: results[setup.run(entrant.key, **part.changes)] for part in (FULL, *PARTS)}
        for entrant in map(entrant_of, (EBRANK, EXPOSURE))
    }
    return Outcome(
        tables=(table(results_by_entrant),),
        figures=tuple(figure(entrant, parts) for entrant, parts in results_by_entrant.items()),
        findings=tuple(
            finding
            for entrant, parts in results_by_entrant.items()
            for finding in findings(entrant, parts)
        ),
    )


def figure(entrant: Entrant, parts: dict[Part, Result]) -> Figure:
    """Return an estimator's parts over time."""

    def lines(measure: Measure) -> tuple[Series, ...]:
        return tuple(
            over_time(_line_of(entrant, part), result, measure) for part, result in parts.items()
        )

    trials = len(parts[FULL].trials)

    return Figure(
        "ablation" if entrant.key == EBRANK else "ablation-exposure",
        f"Ablation of {entrant.label}",
        "Without the exploration bonus, by the prior alone, by behavior alone. "
        f"{averaged(trials, spread=BANDS)}.",
        panels("sessions", lines, MEASURES),
    )


def _line_of(entrant: Entrant, part: Part) -> Entrant:
    if part is FULL:
        return entrant
    return Entrant(entrant.key, part.label, entrant.setting, part.style)


def table(results_by_entrant: dict[Entrant, dict[Part, Result]]) -> Table:
    """Return the final figures, with the significance of what each part adds."""
    p_columns = [Column(f"p, {measure.title}") for measure in (WARM, CUM)]
    rows = []
    for entrant, parts in results_by_entrant.items():
        compared = {measure: _against_full(parts, measure) for measure in (WARM, CUM)}
        for part, result in parts.items():
            p_values = [
                _bare(compared[measure][part.label].p_value) if part is not FULL else ""
                for measure in (WARM, CUM)
            ]
            rows.append(Row((part.label, *cells(result), *p_values), group=entrant.label))
    itself = "".join(
        f" {entrant.label}: {ITSELF}."
        for entrant, parts in results_by_entrant.items()
        if _explores_nothing(parts)
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
    """Return a p-value without "p =", for a column whose heading says so.

    >>> _bare(0.0312), _bare(0.0)
    ('.0312', '< .0001')
    """
    return p_text(p_value).removeprefix("p ").removeprefix("= ")


def findings(entrant: Entrant, parts: dict[Part, Result]) -> Iterator[Finding]:
    """Yield whether the full model is better than without each part."""
    compared = {measure: _against_full(parts, measure) for measure in (WARM, CUM)}
    for part in PARTS:
        for measure in (WARM, CUM):
            gain = compared[measure][part.label]
            itself = part is EXPLORATION and _explores_nothing(parts)
            yield Finding(
                f"{entrant.style}-needs-{part.lacks}-{measure.name}",
                f"{entrant.label} has a higher {measure.title} {part.needed}",
                gain.verdict,
                ITSELF if itself else f"adjusted {p_text(gain.p_value)}",
                NEEDED,
                f"{part.lacks} of {entrant.label}, {measure.title}",
                effect=gain.effect(measure),
            )


def _explores_nothing(parts: dict[Part, Result]) -> bool:
    """Return whether the full model is itself the run without exploration."""
    return parts[FULL] is parts[EXPLORATION]


def _against_full(parts: dict[Part, Result], measure: Measure) -> dict[str, Contrast]:
    pairs = {part.label: (parts[FULL], parts[part]) for part in PARTS}
    return pairwise(pairs, measure)


EXPERIMENT = Experiment("ablation", "Figure: ablation of EBRank", outcome, runs)
