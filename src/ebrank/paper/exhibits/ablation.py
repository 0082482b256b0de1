"""Figure: is every part of EBRank needed? Without exploration; the prior alone; behavior alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ebrank.lab.simulation.result import Result
from ebrank.paper.framework import measures
from ebrank.paper.framework.display import Column, Display, Figure, Finding, Row, Table
from ebrank.paper.framework.entrants import EBRANK, EXPOSURE, Entrant, entrant_of
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, NamedRuns, Setup
from ebrank.paper.framework.measures import CUM, WARM, Measure
from ebrank.paper.framework.numbers import p_text
from ebrank.paper.framework.significance import Contrast, pairwise


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
COMPARED = (WARM, CUM)
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


def runs(setup: Setup) -> NamedRuns:
    """Return both estimators, complete and without each part."""
    return {
        (key, part): setup.run(key, **part.changes)
        for key in (EBRANK, EXPOSURE)
        for part in (FULL, *PARTS)
    }


def display(setup: Setup, results: NamedResults) -> Display:
    """Return a figure and a table for both estimators."""
    by_entrant = {
        entrant_of(key): {part: results[key, part] for part in (FULL, *PARTS)}
        for key in (EBRANK, EXPOSURE)
    }
    return Display(
        tables=(table(by_entrant),),
        figures=tuple(figure(*each) for each in by_entrant.items()),
        findings=tuple(finding for each in by_entrant.items() for finding in findings(*each)),
    )


def figure(entrant: Entrant, parts: dict[Part, Result]) -> Figure:
    """Return an estimator's parts over time."""
    lines = {
        entrant
        if part is FULL
        else Entrant(entrant.key, part.label, entrant.setting, part.style): result
        for part, result in parts.items()
    }
    return measures.figure_over_time(
        "ablation" if entrant.key == EBRANK else "ablation-exposure",
        f"Ablation of {entrant.label}",
        "Without the exploration bonus, by the prior alone, by behavior alone. "
        f"{measures.averaged(len(parts[FULL].trials), spread=measures.BANDS)}.",
        lines,
    )


def table(by_entrant: dict[Entrant, dict[Part, Result]]) -> Table:
    """Return the final figures, with the significance of what each part adds."""
    rows, itself = [], ""
    for entrant, parts in by_entrant.items():
        gains = _against_full(parts)
        for part, result in parts.items():
            p_values = (_bare(own[part].p_value) if part in own else "" for own in gains.values())
            rows.append(Row((part.label, *measures.cells(result), *p_values), group=entrant.label))
        if _explores_nothing(parts):
            itself += f" {entrant.label}: {ITSELF}."
    return Table(
        "ablation",
        "Ablation",
        "p: of the full model's lead over the part, by Fisher's randomization test, adjusted by "
        f"Holm's method over the three parts.{itself}",
        (Column("part"), *measures.COLUMNS, *(Column(f"p, {each.title}") for each in COMPARED)),
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
    gains = _against_full(parts)
    for part in PARTS:
        itself = part is EXPLORATION and _explores_nothing(parts)
        for measure, own in gains.items():
            yield own[part].finding(
                f"{entrant.style}-needs-{part.lacks}-{measure.name}",
                f"{entrant.label} has a higher {measure.title} {part.needed}",
                measure,
                NEEDED,
                f"{part.lacks} of {entrant.label}, {measure.title}",
                ITSELF if itself else "",
            )


def _explores_nothing(parts: dict[Part, Result]) -> bool:
    """Return whether the full model is itself the run without exploration."""
    return parts[FULL] is parts[EXPLORATION]


def _against_full(parts: dict[Part, Result]) -> dict[Measure, dict[Part, Contrast]]:
    """Return what each part adds, by measure."""
    pairs = {part: (parts[FULL], parts[part]) for part in PARTS}
    return {measure: pairwise(pairs, measure) for measure in COMPARED}


EXHIBIT = Exhibit("ablation", display, runs)
