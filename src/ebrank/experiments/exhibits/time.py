"""Figures: ranking performance over time.

The first shows BM25 and all rankers that use behavior, as in the paper, and `auto`; the second
shows all others: the rankers without behavior, and those set apart.
"""

from __future__ import annotations

from ebrank.experiments.framework.entrants import ENTRANTS, FIGURES
from ebrank.experiments.framework.experiment import Experiment, NamedResults, NamedRuns, Setup
from ebrank.experiments.framework.measures import AT_UPDATES, BANDS, averaged, figure_over_time
from ebrank.experiments.framework.outcome import Outcome

OTHERS = tuple(entrant for entrant in ENTRANTS if entrant.key == "bm25" or entrant not in FIGURES)
"""The rankers of the second figure; BM25 is in both."""
TITLE = "Performance over time"
SHOWN = {
    "time": (FIGURES, TITLE, "All rankers but BM25 use behavior."),
    "time-others": (
        OTHERS,
        f"{TITLE}: rankers without behavior, and bounds",
        "Of these, Thompson alone uses behavior; Oracle knows the true relevance.",
    ),
}
"""By the figure's name: its rankers, its title and the end of its caption."""


def runs(setup: Setup) -> NamedRuns:
    """Return all entrants."""
    return {entrant: setup.run(entrant.key) for entrant in ENTRANTS}


def outcome(setup: Setup, results: NamedResults) -> Outcome:
    """Return the figures: a panel for each measure, a line for each ranker."""
    begin = averaged(setup.trials, AT_UPDATES, BANDS)
    return Outcome(
        figures=tuple(
            figure_over_time(
                name, title, f"{begin}. {note}", {entrant: results[entrant] for entrant in drawn}
            )
            for name, (drawn, title, note) in SHOWN.items()
        )
    )


EXPERIMENT = Experiment("time", "Figures: performance over time", outcome, runs)
