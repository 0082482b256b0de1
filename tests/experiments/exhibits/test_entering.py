from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.experiments.exhibits import entering
from ebrank.experiments.framework.entrants import (
    EBRANK,
    EXPOSURE,
    FIGURES,
    UCBRANK,
    Entrant,
    entrant_of,
)
from ebrank.experiments.framework.experiment import Run
from ebrank.experiments.framework.measures import WARM
from ebrank.experiments.framework.runner import FinishedDataset
from ebrank.experiments.framework.significance import lead
from ebrank.simulation.result import Result
from tests.experiments.made import result


def test_a_point_for_each_eta_with_the_epsilon_tuned_for_it(finished: FinishedDataset) -> None:
    (figure,) = finished.outcomes["entering"].figures
    setup = finished.setup
    assert all(line.x == (0.1, 0.2, 0.4, 0.7, 1.0) for p in figure.panels for line in p.series)
    (line,) = [line for line in figure.panels[2].series if line.style == "ucbrank"]
    for eta, height in zip(line.x, line.y, strict=True):
        config = replace(setup.config, entering_probability=float(eta))
        run = Run(setup.chosen[UCBRANK, config], config)
        assert height == finished.results[run].cum_ndcg.mean()
        assert run.config.entering_probability == eta


def made(changes: dict[tuple[str, float], float]) -> dict[tuple[Entrant, float], Result]:
    """Return results in which both EBRank lead under every η, but for changes of some warm."""
    results = {}
    for number, one in enumerate(FIGURES):
        for eta in entering.ETAS:
            warm = changes.get((one.key, eta), 0.9 if one.key in (EBRANK, EXPOSURE) else 0.5)
            made = result(one.key, [(0.5, warm, warm)] * 2, noise=0.01, seed=10 * number)
            results[one, eta] = made
    return results


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "confirmed"),
        ({(UCBRANK, 0.2): 0.8999}, "undecided"),
        ({("prior", 0.7): 0.95}, "contradicted"),
        ({("prior", 0.7): 0.95, (UCBRANK, 0.2): 0.8999}, "contradicted"),
    ],
)
def test_first_under_every_eta(changes: dict[tuple[str, float], float], verdict: str) -> None:
    findings = list(entering.findings(made(changes)))
    styles = [entrant_of(key).style for key in (EBRANK, EXPOSURE)]
    assert [finding.name for finding in findings] == [
        f"{style}-first-{measure}-every-eta" for style in styles for measure in ("warm", "cum")
    ]
    assert {finding.verdict for finding in findings} == {verdict}


def test_a_finding_shows_the_hardest_eta_and_names_the_rival() -> None:
    finding = next(entering.findings(made({(UCBRANK, 0.2): 0.8})))
    assert finding.detail == (
        "shown at η = 0.2, the hardest, against UCBRank, adjusted p < .0001; "
        "by η: 0.1 +.400, 0.2 +.100, 0.4 +.400, 0.7 +.400, 1 +.400"
    )
    assert finding.effect is not None
    assert finding.effect.value == pytest.approx(0.1)


def test_bad_luck_under_one_eta_of_five_contradicts_nothing() -> None:
    """Of five ties, one is lost by a p-value that would do if it were the only one."""
    bm25, results = entrant_of("bm25"), made({})
    for eta in entering.ETAS:
        warm = 0.915 if eta == 0.4 else 0.9
        tie = result("bm25", [(0.5, warm, 0.9)] * 2, noise=0.1, seed=1)
        results[bm25, eta] = tie
    ours, theirs = results[entrant_of(EBRANK), 0.4], results[bm25, 0.4]
    assert lead(ours, {"BM25": theirs}, WARM).verdict == "contradicted"
    finding = next(entering.findings(results))
    assert finding.verdict == "undecided"
    assert "at η = 0.4, the hardest, against BM25, adjusted p = .0915" in finding.detail
    assert finding.effect is not None
    assert finding.effect.high is not None
    assert finding.effect.value < 0 < finding.effect.high
