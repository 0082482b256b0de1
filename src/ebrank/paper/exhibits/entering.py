"""Figure: how fast items enter. Each η has its own ε, chosen on validation queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ebrank.paper.framework.display import VERDICTS, Display, Figure, Finding
from ebrank.paper.framework.entrants import (
    EBRANK,
    EXPOSURE,
    FIGURES,
    OURS,
    Entrant,
    entrant_of,
)
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, NamedRuns, Setup
from ebrank.paper.framework.measures import CUM, WARM, Measure, averaged, panels_against
from ebrank.paper.framework.significance import Lead, lead, pairwise

FIRST = "EBRank leads under every entering probability"
RIVALS = tuple(entrant for entrant in FIGURES if entrant.key not in OURS)
"""Other methods that use behavior, and BM25; those without behavior are run at η = 1 only."""
ETAS = (0.1, 0.2, 0.4, 0.7, 1.0)


def runs(setup: Setup) -> NamedRuns:
    """Return all drawn rankers under every η."""
    configs = {eta: replace(setup.config, entering_probability=eta) for eta in ETAS}
    return {
        (entrant, eta): setup.run(entrant.key, config)
        for eta, config in configs.items()
        for entrant in FIGURES
    }


def display(setup: Setup, results: NamedResults) -> Display:
    """Return the figure, and whether EBRank is first throughout."""
    lines = {entrant: {eta: results[entrant, eta] for eta in ETAS} for entrant in FIGURES}
    figure = Figure(
        "entering",
        "Entering probability",
        "The lower η, the more sessions there are before the next item enters. "
        f"{averaged(setup.trials)}; ε is tuned for each η.",
        panels_against("entering probability η", lines),
    )
    return Display(figures=(figure,), findings=tuple(findings(results)))


def findings(results: NamedResults) -> Iterator[Finding]:
    """Yield whether EBRank leads all drawn rankers under every η; the hardest η decides."""
    for entrant in map(entrant_of, (EBRANK, EXPOSURE)):
        for measure in (WARM, CUM):
            leads = _leads(results, entrant, measure)
            eta = _hardest(leads)
            yield leads[eta].contrast.finding(
                f"{entrant.style}-first-{measure.name}-every-eta",
                f"{entrant.label} leads BM25 and all other methods with behavior in "
                f"{measure.title} under every entering probability",
                measure,
                FIRST,
                f"{entrant.label}, {measure.title}",
                f"shown at η = {eta:g}, the hardest, {leads[eta]}; {_by_eta(leads)}",
            )


def _leads(results: NamedResults, entrant: Entrant, measure: Measure) -> dict[float, Lead]:
    """Return the lead under each η.

    To confirm the claim takes every η, so each is tested alone. To contradict it takes one, which
    luck may provide; so where it does not lead, p-values are adjusted over all η and rivals.
    """
    ours = {eta: results[entrant, eta] for eta in ETAS}
    theirs = {eta: {other.label: results[other, eta] for other in RIVALS} for eta in ETAS}
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


def _hardest(leads: dict[float, Lead]) -> float:
    """Return the η that decides the verdict over all of them."""
    verdict = max((each.verdict for each in leads.values()), key=VERDICTS.index)
    own = [eta for eta, each in leads.items() if each.verdict == verdict]
    return min(own, key=lambda eta: leads[eta].contrast.share)


def _by_eta(leads: dict[float, Lead]) -> str:
    """Return the distance to the rival that decides under each η."""
    return "by η: " + ", ".join(
        f"{eta:g} {each.measure.text(each.contrast.difference, signed=True)}"
        for eta, each in leads.items()
    )


EXHIBIT = Exhibit("entering", display, runs)
