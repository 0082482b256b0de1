"""Figure: ranking performance over time, of BM25 and all rankers that use behavior."""

from __future__ import annotations

from ebrank.paper.framework.display import Display
from ebrank.paper.framework.entrants import FIGURES
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, NamedRuns, Setup
from ebrank.paper.framework.measures import AT_UPDATES, BANDS, averaged, figure_over_time


def runs(setup: Setup) -> NamedRuns:
    """Return the rankers drawn."""
    return {entrant: setup.run(entrant.key) for entrant in FIGURES}


def display(setup: Setup, results: NamedResults) -> Display:
    """Return the figure: a panel for each measure, a line for each ranker."""
    begin = averaged(setup.trials, AT_UPDATES, BANDS)
    caption = f"{begin}. All rankers but BM25 use behavior."
    return Display(figures=(figure_over_time("time", "Performance over time", caption, results),))


EXHIBIT = Exhibit("time", display, runs)
