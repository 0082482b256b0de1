from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.experiments.exhibits import entering
from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, FIGURES, UCBRANK, entrant_of
from ebrank.experiments.framework.experiment import Run, Setup
from ebrank.experiments.framework.runner import FinishedDataset
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


def made(setup: Setup, changes: dict[tuple[str, float], float]) -> dict[Run, Result]:
    """Return results in which both EBRank lead under every η, but for changes of some warm."""
    results = {}
    for number, one in enumerate(FIGURES):
        for eta in entering.ETAS:
            warm = changes.get((one.key, eta), 0.9 if one.key in (EBRANK, EXPOSURE) else 0.5)
            made = result(one.key, [(0.5, warm, warm)] * 2, noise=0.01, seed=10 * number)
            results[entering.run_of(setup, one, eta)] = made
    return results


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({}, set[str]()),
        ({(UCBRANK, 0.2): 0.8999}, {"warm-every-eta-significantly", "cum-every-eta-significantly"}),
        (
            {("prior", 0.7): 0.95},
            {
                f"{measure}-every-eta{surely}"
                for measure in ("warm", "cum")
                for surely in ("", "-significantly")
            },
        ),
    ],
)
def test_first_under_every_eta(
    finished: FinishedDataset, changes: dict[tuple[str, float], float], fails: set[str]
) -> None:
    findings = list(entering.findings(finished.setup, made(finished.setup, changes)))
    assert len(findings) == 2 * 2 * 2
    failed = {finding.name for finding in findings if not finding.holds}
    styles = [entrant_of(key).style for key in (EBRANK, EXPOSURE)]
    assert failed == {f"{style}-first-{fail}" for style in styles for fail in fails}


def test_a_finding_names_the_strongest_rival(finished: FinishedDataset) -> None:
    results = made(finished.setup, {(UCBRANK, 0.2): 0.8})
    detail = next(entering.findings(finished.setup, results)).detail
    assert "η = 0.2: +.100 against UCBRank, p < .0001; η = 0.4: +.400 against" in detail
