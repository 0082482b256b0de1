"""Figure: ranking performance over time, of BM25 and all rankers that use behavior."""

from __future__ import annotations

from ebrank.experiments.lineup import FIGURES, TUNED
from ebrank.experiments.measures import MEASURES, Measure, over_time, panels
from ebrank.experiments.outcome import Figure, Outcome, Series
from ebrank.experiments.run import Experiment, Results, Run, Setup


def runs(setup: Setup) -> list[Run]:
    """Return the entrants that are drawn."""
    return [setup.run(one.key) for one in FIGURES]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return the figure: a panel for each measure, a line for each ranker."""

    def lines(measure: Measure) -> tuple[Series, ...]:
        return tuple(over_time(one, results[setup.run(one.key)], measure) for one in FIGURES)

    figure = Figure(
        "time",
        "Performance over time",
        "Mean of the trials at each model update; bands are one standard deviation. All rankers "
        "but BM25 use behavior.",
        panels("sessions", lines, MEASURES),
    )
    return Outcome(figures=(figure,))


EXPERIMENT = Experiment("time", "Figure: performance over time", outcome, runs, tuned=TUNED)
