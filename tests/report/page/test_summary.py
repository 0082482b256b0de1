"""The top of the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.experiments.exhibits.table2 import HINGES
from ebrank.report.page.standings import standings
from ebrank.report.page.summary import (
    concatenation,
    leaders,
    measures,
    result,
    sentences,
    simulated,
    summaries,
    title,
    waits,
)
from tests.report.results import (
    FINDINGS,
    MARKS,
    SCORES,
    reproduction,
    results,
    table2,
    waiting,
)
from tests.report.sample import document


def test_it_shows_cold_warm_and_cum_of_the_rankers_in_its_table() -> None:
    (summary,) = summaries(reproduction())
    assert [panel.partition("<title>")[2].partition("<")[0] for panel in summary.panels] == [
        "Performance over time: Cold-NDCG",
        "Performance over time: Warm-NDCG",
        "Performance over time: Cum-NDCG",
    ]
    for panel in summary.panels:
        assert ">UCBRank<" in panel
        assert ">PDGD<" in panel
        assert ">MGD<" not in panel
    assert summary.table is not None
    assert len(summary.table.rows) == 7
    assert len(summary.sentences) == 4
    assert [row.name for row in summary.rows] == [row.cells[0] for row in summary.table.rows]
    assert summary.reference == "the paper's on MQ2007"


def test_dots_have_the_scale_of_all_figures() -> None:
    """Cold-NDCG here is .3 to .52 ± .01, the paper's .4 and .6."""
    (summary,) = summaries(reproduction())
    scale = summary.scales["Cold-NDCG"]
    assert (scale.low, scale.high) == pytest.approx((0.29, 0.6))
    assert scale.place(0.6) == 95.0


def test_the_title_of_a_report_about_auto_alone() -> None:
    ours = replace(results().findings[0], ours=True)
    data = replace(results(), findings=(ours,))
    alone = document(datasets=(data,))
    assert title(alone) == "auto, with nothing to tune, on data: 1 confirmed"
    assert title(reproduction()).startswith("EBRank leads on data")


def test_each_part_stands_without_the_others() -> None:
    (drawn,) = summaries(replace(reproduction(), tables=()))
    assert drawn.table is None
    assert ">MGD<" in drawn.panels[0]
    unseen = replace(results(), figures=())
    (tabled,) = summaries(replace(reproduction(), datasets=(unseen,)))
    assert not tabled.panels
    assert tabled.table is not None
    assert summaries(replace(reproduction(), tables=(), datasets=(unseen,))) == []


def test_what_was_simulated_in_words() -> None:
    assert simulated(reproduction()) == (
        "In each of 2 trials, every ranker served simulated users: 59,000 sessions on data (1,643 "
        "queries, 67,000 items; synthetic, in place of MQ2007). BM25 had served each query 20 "
        "times before. New items kept entering; rankers learned from clicks, in 10 updates."
    )
    two = (results(), replace(results(), name="real", stands_in_for=None))
    summary = simulated(document(trials=1, datasets=two, tables=(table2(),)))
    assert summary.startswith("In one trial, every ranker")
    assert " and 59,000 sessions on real (1,643 queries, 67,000 items)." in summary
    assert simulated(document(datasets=())) == ""


def test_the_ranks_measured_are_those_of_the_run() -> None:
    assert measures(document(config={})).endswith("The tables show NDCG on test queries.")
    deeper = document(config={"cutoffs": [10, 5], "list_length": 5})
    assert measures(deeper).endswith(
        "The tables show Cold- and Warm-NDCG@10, Cum- and Run-NDCG@5 on test queries."
    )


def test_who_leads_by_how_much_and_whether_significantly() -> None:
    warm, cum = leaders(standings(table2(), results()))
    assert warm == (
        "UCBRank is first in Warm-NDCG with .800, .010 ahead of EBRank; it is not significantly "
        "ahead of all others. The variant EBRank (exposure) has .850. auto, untuned "
        "and not in the paper, has .860."
    )
    assert cum == (
        "EBRank is first in Cum-NDCG with 160.0, 10.0 ahead of UCBRank; it is significantly "
        "ahead of all others. The variant EBRank (exposure) has 170.0. auto, untuned and not "
        "in the paper, has 172.0."
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
