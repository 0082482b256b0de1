"""Rankers against some value that is varied: a panel for each measure, and a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ebrank.experiments.lineup import Entrant
from ebrank.experiments.measures import MEASURES, Measure, against, averaged, cells, panels
from ebrank.experiments.outcome import Column, Figure, Outcome, Row, Series, Table
from ebrank.experiments.run import Experiment, Results, Run, Setup


@dataclass(frozen=True)
class Sweep:
    """An experiment that varies one value.

    Attributes:
        name, title, caption: of its figure and table; how trials were averaged is added.
        x_label: what is varied.
        values: which values it takes.
        entrants: who is watched.
        run: the run of an entrant with a value.
        log_x: whether equal ratios of the value are equal distances.
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
        """What the runner takes."""
        return Experiment(
            self.name,
            self.title,
            self.outcome,
            self.runs,
            tuned=tuple(one.key for one in self.entrants if one.tuned),
            extra=True,
        )

    def runs(self, setup: Setup) -> list[Run]:
        """Return every entrant with every value."""
        return [self.run(setup, one, value) for one in self.entrants for value in self.values]

    def outcome(self, setup: Setup, results: Results) -> Outcome:
        """Return the figure and the table."""
        found = {
            one: [results[self.run(setup, one, value)] for value in self.values]
            for one in self.entrants
        }

        def lines(measure: Measure) -> tuple[Series, ...]:
            return tuple(against(one, self.values, each, measure) for one, each in found.items())

        drawn = (replace(p, log_x=self.log_x) for p in panels(self.x_label, lines, MEASURES))
        rows = [
            Row((f"{value:g}", *cells(result)), group=one.label)
            for one, each in found.items()
            for value, result in zip(self.values, each, strict=True)
        ]
        columns = (Column(self.x_label), *(Column(measure.title) for measure in MEASURES))
        caption = f"{self.caption} {averaged(setup.trials)}."
        return Outcome(
            tables=(Table(self.name, self.title, caption, columns, tuple(rows)),),
            figures=(Figure(self.name, self.title, caption, tuple(drawn)),),
        )
