"""Figure: how fast items enter. Each η has an ε of its own, chosen on validation queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ebrank.experiments.contest import Lead, in_words, lead
from ebrank.experiments.lineup import EBRANK, EXPOSURE, FIGURES, TUNED, Entrant, entrant
from ebrank.experiments.measures import CUM, MEASURES, WARM, Measure, against, averaged, panels
from ebrank.experiments.outcome import Figure, Finding, Outcome, Series
from ebrank.experiments.run import Experiment, Results, Run, Setup

FIRST = "EBRank is first under every entering probability"
RIVALS = tuple(one for one in FIGURES if one.key not in (EBRANK, EXPOSURE))
"""Other methods that use behavior, and BM25; those without behavior are run at η = 1 only."""
ETAS = (0.1, 0.2, 0.4, 0.7, 1.0)


def run_of(setup: Setup, one: Entrant, eta: float) -> Run:
    """Return the run of an entrant under an entering probability."""
    return setup.run(one.key, replace(setup.config, entering_probability=eta))


def runs(setup: Setup) -> list[Run]:
    """Return all that are drawn, under every η."""
    return [run_of(setup, one, eta) for eta in ETAS for one in FIGURES]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return the figure, and whether EBRank is first throughout."""

    def lines(measure: Measure) -> tuple[Series, ...]:
        return tuple(
            against(one, ETAS, [results[run_of(setup, one, eta)] for eta in ETAS], measure)
            for one in FIGURES
        )

    drawn = panels("entering probability η", lines, MEASURES)
    figure = Figure(
        "entering",
        "Entering probability",
        "The lower η, the more sessions there are before the next item enters. "
        f"{averaged(setup.trials)}; ε is tuned for each η.",
        tuple(replace(panel, log_x=True) for panel in drawn),
    )
    return Outcome(figures=(figure,), findings=tuple(findings(setup, results)))


def findings(setup: Setup, results: Results) -> Iterator[Finding]:
    """Yield whether EBRank is ahead of all that are drawn under every η, and surely so."""
    for one in map(entrant, (EBRANK, EXPOSURE)):
        for measure in (WARM, CUM):
            leads = {eta: _lead(setup, results, one, eta, measure) for eta in ETAS}
            claim = (
                f"ahead of BM25 and all other methods with behavior in {measure.title} under every "
                "entering probability"
            )
            name = f"{one.style}-first-{measure.name}-every-eta"
            ahead = all(each.difference > 0 for each in leads.values())
            sure = all(each.significant for each in leads.values())
            subject = f"{one.label}, {measure.name.capitalize()}"
            yield Finding(name, f"{one.label} is {claim}", ahead, _told(leads), FIRST, subject)
            yield Finding(
                f"{name}-significantly",
                f"{one.label} is significantly {claim}",
                sure,
                _told(leads),
                FIRST,
                f"{subject}, significantly",
            )


def _told(leads: dict[float, Lead]) -> str:
    """Return the distance to the strongest rival under each η."""
    return "; ".join(
        f"η = {eta:g}: {each.measure.text(each.difference, '+')} against {each.rival}, "
        f"{in_words(each.p_value)}"
        for eta, each in leads.items()
    )


def _lead(setup: Setup, results: Results, one: Entrant, eta: float, measure: Measure) -> Lead:
    rivals = {other.label: results[run_of(setup, other, eta)] for other in RIVALS}
    return lead(results[run_of(setup, one, eta)], rivals, measure)


EXPERIMENT = Experiment(
    "entering", "Figure: entering probability", outcome, runs, tuned=TUNED, etas=ETAS
)
