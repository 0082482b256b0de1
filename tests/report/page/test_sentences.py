"""Sentences: each says what the figures say, and changes with them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.experiments.exhibits.table2 import HINGES
from ebrank.report.page.sentences import concatenation, leaders, result, sentences, waits
from ebrank.report.page.standings import standings
from tests.report.results import FINDINGS, MARKS, SCORES, results, table2, waiting


def test_who_leads_by_how_much_and_whether_significantly() -> None:
    warm, cum = leaders(standings(table2(), results()))
    assert warm == (
        "UCBRank is first in Warm-NDCG with .800, .010 ahead of EBRank; it is not significantly "
        "ahead of all others. The variant EBRank (exposure) has .850."
    )
    assert cum == (
        "EBRank is first in Cum-NDCG with 160.0, 10.0 ahead of UCBRank; it is significantly "
        "ahead of all others. The variant EBRank (exposure) has 170.0."
    )


def test_where_ebrank_is_third_its_figure_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCORES, "prior", (0.5, 0.9, 100.0))
    warm, _ = leaders(standings(table2(), results()))
    assert "PRIOR is first in Warm-NDCG with .900, .100 ahead of UCBRank" in warm
    assert "EBRank has .790." in warm


def test_what_concatenation_costs() -> None:
    found = standings(table2(), results())
    start = (
        "Clicks as a feature change Cold-NDCG by −.110 on average over 2 rankers, at worst "
        "from .500 to .300 (CFTopK)."
    )
    one, other = FINDINGS
    for findings, verdict in (
        ((one, other), " A loss is confirmed for CFTopK. It is undecided for PDGD."),
        ((one,), " A loss is confirmed for CFTopK."),
        ((other,), " It is undecided for PDGD."),
        ((), ""),
    ):
        assert list(concatenation(found, findings)) == [f"{start}{verdict} {HINGES}."]


def test_who_shows_new_items() -> None:
    assert list(waits(waiting())) == [
        "Of the relevant items that are new, this many are shown within 10 sessions of their "
        "query: 100 % with UCBRank, 89 % with EBRank, 9 % with CFTopK with clicks as a feature."
    ]
    assert list(waits(replace(waiting(), rows=()))) == []
    assert list(waits(replace(waiting(), columns=waiting().columns[:1], rows=()))) == []


def test_the_title_says_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    data, found = results(), standings(table2(), results())
    assert result([(data, found)]) == (
        "EBRank leads on data; clicks as a feature cost new items up to 40 % of their NDCG"
    )
    both = result([(data, found), (replace(data, name="b"), found)])
    assert both.startswith("EBRank leads significantly on 2 of 2 datasets;")
    monkeypatch.setitem(SCORES, "ucbrank", (0.5, 0.8, 165.0))
    behind = standings(table2(), data)
    assert result([(data, behind)]).startswith("UCBRank leads on data, not significantly;")
    assert result([(data, {})]) == ""


def test_the_title_claims_no_more_than_the_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MARKS, ("ebrank", 2), "*")
    unsure = tuple(replace(finding, verdict="undecided") for finding in FINDINGS)
    data, found = results(findings=unsure), standings(table2(), results())
    assert result([(data, found)]) == "EBRank leads on data, not significantly"
    both = [(data, found), (replace(data, name="b"), found)]
    assert result(both) == "EBRank leads significantly on 0 of 2 datasets"
    _, other = FINDINGS  # of PDGD, which loses .02 of .55
    sure = results(findings=(unsure[0], replace(other, verdict="confirmed")))
    assert result([(sure, found)]).endswith(
        "; clicks as a feature cost new items up to 4 % of their NDCG"
    )


def test_of_what_was_not_run_nothing_is_said() -> None:
    assert sentences(replace(results(), tables=()), {}) == []
    assert len(sentences(results(), standings(table2(), results()))) == 4
