"""Figures: ranking performance over time.

The first shows BM25 and all rankers that use behavior, as in the paper; the second shows all
others: the rankers without behavior, and those set apart.
"""

from __future__ import annotations

from ebrank.experiments.framework.entrants import ENTRANTS, FIGURES, Entrant
from ebrank.experiments.framework.experiment import Experiment, Results, Run, Setup
from ebrank.experiments.framework.measures import (
    AT_UPDATES,
    BANDS,
    MEASURES,
    Measure,
    averaged,
    over_time,
    panels,
)
from ebrank.experiments.framework.outcome import Figure, Outcome, Series

OTHERS = tuple(entrant for entrant in ENTRANTS if entrant.key == "bm25" or entrant not in FIGURES)
"""The rankers of the second figure; BM25 is in both."""


def runs(setup: Setup) -> list[Run]:
    """Return all entrants."""
    return [setup.run(entrant.key) for entrant in ENTRANTS]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return the figures: a panel for each measure, a line for each ranker."""

    def drawn(entrants: tuple[Entrant, ...], name: str, title: str, caption: str) -> Figure:
        def lines(measure: Measure) -> tuple[Series, ...]:
            return tuple(
                over_time(entrant, results[setup.run(entrant.key)], measure) for entrant in entrants
            )

        caption = f"{averaged(setup.trials, AT_UPDATES, BANDS)}. {caption}"
        return Figure(name, title, caption, panels("sessions", lines, MEASURES))

    title = "Performance over time"
    return Outcome(
        figures=(
            drawn(FIGURES, "time", title, "All rankers but BM25 use behavior."),
            drawn(
                OTHERS,
                "time-others",
                f"{title}: rankers without behavior, and bounds",
                "Of these, Thompson alone uses behavior; Oracle knows the true relevance.",
            ),
        )
    )


EXPERIMENT = Experiment("time", "Figures: performance over time", outcome, runs)
