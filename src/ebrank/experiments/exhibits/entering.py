"""Figure: how fast items enter. Each η has its own ε, chosen on validation queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ebrank.experiments.framework.entrants import (
    EBRANK,
    EXPOSURE,
    FIGURES,
    Entrant,
    entrant_of,
)
from ebrank.experiments.framework.experiment import Experiment, Results, Run, Setup
from ebrank.experiments.framework.measures import (
    CUM,
    MEASURES,
    WARM,
    Measure,
    against,
    averaged,
    panels,
)
from ebrank.experiments.framework.outcome import (
    VERDICTS,
    Figure,
    Finding,
    Outcome,
    Series,
    Verdict,
)
from ebrank.experiments.framework.significance import Lead, lead, pairwise

FIRST = "EBRank leads under every entering probability"
RIVALS = tuple(entrant for entrant in FIGURES if entrant.key not in (EBRANK, EXPOSURE))
"""Other methods that use behavior, and BM25; those without behavior are run at η = 1 only."""
ETAS = (0.1, 0.2, 0.4, 0.7, 1.0)


def run_of(setup: Setup, entrant: Entrant, eta: float) -> Run:
    """Return the run of an entrant under an entering probability."""
    return setup.run(entrant.key, replace(setup.config, entering_probability=eta))


def runs(setup: Setup) -> list[Run]:
    """Return all drawn rankers under every η."""
    return [run_of(setup, entrant, eta) for eta in ETAS for entrant in FIGURES]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return the figure, and whether EBRank is first throughout."""

    def lines(measure: Measure) -> tuple[Series, ...]:
        return tuple(
            against(entrant, ETAS, [results[run_of(setup, entrant, eta)] for eta in ETAS], measure)
            for entrant in FIGURES
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
    """Yield whether EBRank leads all drawn rankers under every η; the hardest η decides."""
    for entrant in map(entrant_of, (EBRANK, EXPOSURE)):
        for measure in (WARM, CUM):
            leads = _leads(setup, results, entrant, measure)
            verdict, eta = _decided(leads)
            yield Finding(
                f"{entrant.style}-first-{measure.name}-every-eta",
                f"{entrant.label} leads BM25 and all other methods with behavior in "
                f"{measure.title} under every entering probability",
                verdict,
                f"shown at η = {eta:g}, the hardest, {leads[eta]}; {_by_eta(leads)}",
                FIRST,
                f"{entrant.label}, {measure.title}",
                effect=leads[eta].effect,
            )


def _leads(setup: Setup, results: Results, entrant: Entrant, measure: Measure) -> dict[float, Lead]:
    """Return the lead under each η.

    To confirm the claim takes every η, so each is tested alone. To contradict it takes one, which
    luck may provide; so where it does not lead, p-values are adjusted over all η and rivals.
    """
    ours = {eta: results[run_of(setup, entrant, eta)] for eta in ETAS}
    theirs = {
        eta: {other.label: results[run_of(setup, other, eta)] for other in RIVALS} for eta in ETAS
    }
    alone = {eta: lead(ours[eta], theirs[eta], measure) for eta in ETAS}
    if all(each.significant for each in alone.values()):
        return alone
    pairs = {(eta, label): (ours[eta], theirs[eta][label]) for eta in ETAS for label in theirs[eta]}
    over_all = pairwise(pairs, measure)
    return {
        eta: each
        if each.significant
        else replace(each, rivals={label: over_all[eta, label] for label in each.rivals})
        for eta, each in alone.items()
    }


def _decided(leads: dict[float, Lead]) -> tuple[Verdict, float]:
    """Return the verdict over all η, and the η that decides it."""
    verdicts = [each.verdict for each in leads.values()]
    verdict = max(verdicts, key=VERDICTS.index)
    own = [eta for eta, each in leads.items() if each.verdict == verdict]
    return verdict, min(own, key=lambda eta: _share(leads[eta]))


def _share(lead: Lead) -> float:
    """Return by what share it leads; below 0 if it is behind."""
    return lead.effect.relative(lead.effect.value)


def _by_eta(leads: dict[float, Lead]) -> str:
    """Return the distance to the rival that decides under each η."""
    distances = (each.measure.text(each.effect.value, signed=True) for each in leads.values())
    return "by η: " + ", ".join(
        f"{eta:g} {distance}" for eta, distance in zip(leads, distances, strict=True)
    )


EXPERIMENT = Experiment("entering", "Figure: entering probability", outcome, runs)
