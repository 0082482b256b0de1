"""Figure: ranking performance over time, of BM25 and all rankers that use behavior."""

from __future__ import annotations

from ebrank.paper.framework.entrants import FIGURES
from ebrank.paper.framework.experiment import Experiment, NamedResults, NamedRuns, Setup
from ebrank.paper.framework.measures import AT_UPDATES, BANDS, averaged, figure_over_time
from ebrank.paper.framework.outcome import Outcome


def runs(setup: Setup) -> NamedRuns:
    """Return the rankers drawn."""
    return {entrant: setup.run(entrant.key) for entrant in FIGURES}


def outcome(setup: Setup, results: NamedResults) -> Outcome:
    """Return the figure: a panel for each measure, a line for each ranker."""
    begin = averaged(setup.trials, AT_UPDATES, BANDS)
    caption = f"{begin}. All rankers but BM25 use behavior."
    return Outcome(figures=(figure_over_time("time", "Performance over time", caption, results),))


EXPERIMENT = Experiment("time", "Figure: performance over time", outcome, runs)
