"""Letters and pairs against the tests done one by one, on rankers that really ran."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

import ebrank
from ebrank.lab.evaluation.significance import fisher_randomization, holm, query_differences
from ebrank.lab.rankers import registry
from ebrank.lab.simulation import parallel
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result
from ebrank.paper.comparison import Comparison, compared, figure, table
from ebrank.paper.framework.display import Cell
from ebrank.paper.framework.measures import MEASURES
from ebrank.paper.report.figures import LOOKS, looks

RANKERS = ("random", "oracle", "bm25", "ebrank:estimator=exposure", "ebrank:beta=5")


@pytest.fixture(scope="module")
def results() -> list[Result]:
    data = ebrank.load("mq2007-like", scale=0.05)
    config = SimulationConfig(sessions=1500, updates=3)
    return parallel.run(data, [registry.parse(text) for text in RANKERS], config, 1, trials=2)


@pytest.fixture(scope="module")
def found(results: list[Result]) -> Comparison:
    return compared(results)


def test_sharing_a_letter_means_no_significant_difference(
    results: list[Result], found: Comparison
) -> None:
    several, pairs = 0, list(combinations(range(len(results)), 2))
    for measure, letters in zip(MEASURES, found.letters, strict=True):
        both = [(results[i], results[j]) for i, j in pairs]
        tests = [fisher_randomization(query_differences(a, b, measure.metric)) for a, b in both]
        adjusted = holm(tests)
        own = [pair for pair in found.pairs if pair.metric == measure.metric]
        assert [pair.p_value for pair in own] == adjusted.tolist()
        differences = [measure.mean(a) - measure.mean(b) for a, b in both]
        assert [pair.difference for pair in own] == pytest.approx(differences)
        for (i, j), p in zip(pairs, adjusted, strict=True):
            assert bool(set(letters[i]) & set(letters[j])) == (p >= 0.05)
            several += p < 0.05
        best = max(range(len(results)), key=lambda i: measure.mean(results[i]))
        assert "a" in letters[best]
    assert 0 < several < len(MEASURES) * len(pairs), "the test has seen both"


def test_the_table(found: Comparison) -> None:
    shown = table(found)
    assert [row.cells[0] for row in shown.rows] == [result.ranker for result in found.results]
    assert "mq2007-like×0.05" in shown.title
    for column, (measure, letters) in enumerate(zip(MEASURES, found.letters, strict=True), start=1):
        values = [measure.values(result) for result in found.results]
        for row, own, letter in zip(shown.rows, values, letters, strict=True):
            best = own.mean() == max(other.mean() for other in values)
            deviation = pytest.approx(abs(own[0] - own[1]) / 2**0.5)
            cell = Cell(own.mean(), deviation, measure.digits, best, f" {letter}")  # type: ignore[arg-type]
            assert row.cells[column] == cell


def test_the_figure_has_a_line_for_each_ranker_in_its_own_colors(found: Comparison) -> None:
    panels = figure(found).panels
    assert [panel.title for panel in panels] == [measure.title for measure in MEASURES]
    for panel in panels:
        assert [line.label for line in panel.series] == [each.ranker for each in found.results]
        styles = [line.style for line in panel.series]
        assert styles == ["random", "oracle", "bm25", "ebrank", "4 ebrank"]
        assert all(len(line.x) == len(line.y) == len(line.error) == 3 for line in panel.series)
    assert panels[2].series[2].y[-1] == pytest.approx(found.results[2].cum_ndcg.mean())


def test_two_ebranks_have_two_colors(found: Comparison) -> None:
    texts = ("ebrank:epsilon=5", "ebrank:beta=2", "ucbrank", "ebrank:beta=3")
    results = [replace(each, ranker=text) for each, text in zip(found.results, texts, strict=False)]
    (panel, *_) = figure(compared(results)).panels
    drawn = looks(line.style for line in panel.series)
    assert len({look.light for look in drawn.values()}) == len(texts)
    assert drawn["ebrank"] == LOOKS["ebrank"]
    assert drawn["ucbrank"] == LOOKS["ucbrank"]
