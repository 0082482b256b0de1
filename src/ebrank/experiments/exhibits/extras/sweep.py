"""Rankers against one varied value: a panel for each measure, and a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ebrank.experiments.framework.entrants import Entrant
from ebrank.experiments.framework.experiment import Experiment, Results, Run, Setup
from ebrank.experiments.framework.measures import (
    MEASURES,
    Measure,
    against,
    averaged,
    cells,
    panels,
)
from ebrank.experiments.framework.outcome import Column, Figure, Outcome, Row, Series, Table


@dataclass(frozen=True)
class Sweep:
    """An experiment that varies one value.

    Attributes:
        name, title, caption: of its figure and table; how trials are averaged is added.
        x_label: names the varied value.
        values: which values it takes.
        entrants: the rankers to run.
        run: the run of an entrant with a value.
        log_x: whether the x axis is logarithmic.
    """

    name: str
    title: str
    caption: str
    x_label: str
    values: tuple[float, ...]
    entrants: tuple[Entrant, ...]
    run: Callable[[Setup, Entrant, float], Run]
    log_x: bool = False

    @property
    def experiment(self) -> Experiment:
        """The experiment for the runner."""
        return Experiment(
            self.name,
            self.title,
            self.outcome,
            self.runs,
            extra=True,
        )

    def runs(self, setup: Setup) -> list[Run]:
        """Return every entrant with every value."""
        return [
            self.run(setup, entrant, value) for entrant in self.entrants for value in self.values
        ]

    def outcome(self, setup: Setup, results: Results) -> Outcome:
        """Return the figure and the table."""
        results_by_entrant = {
            entrant: [results[self.run(setup, entrant, value)] for value in self.values]
            for entrant in self.entrants
        }

        def lines(measure: Measure) -> tuple[Series, ...]:
            return tuple(
                against(entrant, self.values, own, measure)
                for entrant, own in results_by_entrant.items()
            )

        drawn = (replace(p, log_x=self.log_x) for p in panels(self.x_label, lines, MEASURES))
        rows = [
            Row((f"{value:g}", *cells(result)), group=entrant.label)
            for entrant, own in results_by_entrant.items()
            for value, result in zip(self.values, own, strict=True)
        ]
        columns = (Column(self.x_label), *(Column(measure.title) for measure in MEASURES))
        caption = f"{self.caption} {averaged(setup.trials)}."
        return Outcome(
            tables=(Table(self.name, self.title, caption, columns, tuple(rows)),),
            figures=(Figure(self.name, self.title, caption, tuple(drawn)),),
        )
