"""The top of the page: the rankers a reader looks for first, and the results in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.experiments.exhibits.table2 import HINGES
from ebrank.experiments.framework.outcome import Cell, Column, Row
from ebrank.report.page import summary
from ebrank.report.page.summary import Standing, headline, headline_table, leaders, result
from tests.report.results import (
    FINDINGS,
    MARKS,
    SCORES,
    TITLES,
    reproduction,
    results,
    table2,
    waiting,
)
from tests.report.sample import document

DATA = results()


def standings(**changes: str) -> dict[str, Standing]:
    return summary.standings(table2(**changes), DATA)


def test_figures_are_those_of_table_2() -> None:
    shown = standings()
    for key, scores in SCORES.items():
        assert [cell.value for cell in shown[key].cells.values()] == [*scores, scores[2] / 200]
    assert shown.keys() == SCORES.keys()
    assert summary.standings(table2(), replace(DATA, name="another")) == {}
    assert summary.standings(None, DATA) == {}
    rows = tuple(
        Row((row.cells[0], *[Cell(None)] * 4), row.group) if row.cells[0] == "EBRank" else row
        for row in table2().rows
    )
    without = summary.standings(replace(table2(), rows=rows), DATA)
    assert without.keys() == SCORES.keys() - {"ebrank"}, "it has no figures"


def test_of_the_others_the_best_with_behavior_is_shown() -> None:
    names = [standing.name for standing in headline(standings())]
    clicks = [f"{name} with clicks as a feature" for name in ("PDGD", "CFTopK")]
    assert names == ["BM25", *clicks, "UCBRank", "EBRank", "EBRank (exposure)", "auto"]
    without = headline(standings(without="pdgd:features=concate"))
    assert "PRIOR" in [standing.name for standing in without]


def test_the_table_keeps_marks_and_sets_apart_what_is_apart() -> None:
    rows = headline_table(headline(summary.standings(table2(), replace(DATA, ledger=())))).rows
    (ours,) = (row for row in rows if row.cells[0] == "EBRank")
    assert ours.cells[3] == Cell(160.0, 0.01, 1, marks="*†")
    for place in (1, 2, 3):
        cells = [cell for row in rows if isinstance(cell := row.cells[place], Cell)]
        (best,) = (cell.value for cell in cells if cell.best)
        assert best == max(cell.value or 0.0 for cell in cells)
    assert [row.cells[0] for row in rows if row.apart] == ["EBRank (exposure)", "auto"]
    assert [row.cells[0] for row in rows if row.focus] == ["EBRank"]


def test_published_figures_stand_beside_ours() -> None:
    table = headline_table(headline(standings()), "paper")
    beside = [Column(title, measure) for measure in TITLES[:3] for title in ("ours", "paper")]
    assert table.columns == (Column("ranker"), *beside, Column("Run-NDCG"))
    by_name = {row.cells[0]: row.cells for row in table.rows}
    assert by_name["EBRank"][2:7:2] == (Cell(0.6), Cell(0.8), Cell(171.3, digits=1))
    assert by_name["UCBRank"][2] == Cell(None)
    assert by_name["EBRank (exposure)"][2] == Cell(None), "the paper has no such row"


def test_it_shows_cold_warm_and_cum_of_the_rankers_in_its_table() -> None:
    (shown,) = summary.summaries(reproduction())
    titles = [panel.partition("<title>")[2].partition("<")[0] for panel in shown.panels]
    assert titles == [f"Performance over time: {title}" for title in TITLES[:3]]
    for panel in shown.panels:
        assert ">UCBRank<" in panel
        assert ">PDGD<" in panel
        assert ">MGD<" not in panel
    assert shown.table is not None
    assert (len(shown.table.rows), len(shown.sentences)) == (7, 4)
    assert [row.name for row in shown.rows] == [row.cells[0] for row in shown.table.rows]
    assert shown.reference == "the paper's on MQ2007"
    scale = shown.scales["Cold-NDCG"]  # .3 to .52 ± .01 here, the paper's .4 and .6
    assert (scale.low, scale.high) == pytest.approx((0.29, 0.6))
    assert scale.place(0.6) == 95.0


def test_each_part_stands_without_the_others() -> None:
    (drawn,) = summary.summaries(replace(reproduction(), tables=()))
    assert drawn.table is None
    assert ">MGD<" in drawn.panels[0]
    unseen = replace(DATA, figures=())
    (tabled,) = summary.summaries(replace(reproduction(), datasets=(unseen,)))
    assert not tabled.panels
    assert tabled.table is not None
    assert summary.summaries(replace(reproduction(), tables=(), datasets=(unseen,))) == []
    assert summary.sentences(replace(DATA, tables=()), {}) == []


def test_what_was_simulated_in_words() -> None:
    assert summary.simulated(reproduction()) == (
        "In each of 2 trials, every ranker served simulated users: 59,000 sessions on data (1,643 "
        "queries, 67,000 items; synthetic, in place of MQ2007). BM25 had served each query 20 "
        "times before. New items kept entering; rankers learned from clicks, in 10 updates."
    )
    two = (DATA, replace(DATA, name="real", stands_in_for=None))
    both = summary.simulated(document(trials=1, datasets=two, tables=(table2(),)))
    assert both.startswith("In one trial, every ranker")
    assert " and 59,000 sessions on real (1,643 queries, 67,000 items)." in both
    assert summary.simulated(document(datasets=())) == ""


def test_the_ranks_measured_are_those_of_the_run() -> None:
    for config, ndcg in (
        ({}, "NDCG"),
        ({"cutoffs": [10, 5], "list_length": 5}, "Cold- and Warm-NDCG@10, Cum- and Run-NDCG@5"),
    ):
        words = summary.measures(document(config=config))
        assert words.endswith(f"The tables show {ndcg} on test queries.")


def test_who_leads_by_how_much_and_whether_significantly(monkeypatch: pytest.MonkeyPatch) -> None:
    warm, cum = leaders(standings())
    assert warm == (
        "UCBRank is first in Warm-NDCG with .800, .010 ahead of EBRank; it is not significantly "
        "ahead of all others. The variant EBRank (exposure) has .850. auto, untuned "
        "and not in the paper, has .860."
    )
    assert cum.startswith("EBRank is first in Cum-NDCG with 160.0, 10.0 ahead of UCBRank; it is si")
    monkeypatch.setitem(SCORES, "prior", (0.5, 0.9, 100.0))
    warm, _ = leaders(standings())
    assert "PRIOR is first in Warm-NDCG with .900, .100 ahead of UCBRank" in warm
    assert "EBRank has .790." in warm, "it is third"


def test_what_concatenation_costs() -> None:
    start = (
        "Clicks as a feature change Cold-NDCG by −.110 on average over 2 rankers, at worst "
        "from .500 to .300 (CFTopK)."
    )
    cftopk, pdgd = FINDINGS
    for findings, verdict in (
        ((cftopk, pdgd), " A loss is confirmed for CFTopK. It is undecided for PDGD."),
        ((cftopk,), " A loss is confirmed for CFTopK."),
        ((), ""),
    ):
        text = f"{start}{verdict} {HINGES}."
        assert list(summary.concatenation(standings(), findings)) == [text]


def test_who_shows_new_items() -> None:
    assert list(summary.waits(waiting())) == [
        "Of the relevant items that are new, this many are shown within 10 sessions of their "
        "query: 100 % with UCBRank, 89 % with EBRank, 9 % with CFTopK with clicks as a feature."
    ]
    assert list(summary.waits(replace(waiting(), rows=()))) == []
    assert list(summary.waits(replace(waiting(), columns=waiting().columns[:1], rows=()))) == []


def test_the_title_says_the_result_and_no_more_than_the_findings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown, lost = standings(), "; clicks as a feature cost new items up to {} % of their NDCG"
    other = replace(DATA, name="b")
    unsure = tuple(replace(finding, verdict="undecided") for finding in FINDINGS)
    pdgd = replace(DATA, findings=(unsure[0], replace(FINDINGS[1], verdict="confirmed")))
    undecided = replace(DATA, findings=unsure)
    both = "EBRank leads significantly on {} of 2 datasets"
    assert result([(DATA, shown)]) == f"EBRank leads on data{lost.format(40)}"
    assert result([(DATA, shown), (other, shown)]) == both.format(2) + lost.format(40)
    assert result([(pdgd, shown)]).endswith(lost.format(4)), ".02 of .55"
    assert result([(DATA, {})]) == ""
    monkeypatch.setitem(MARKS, ("ebrank", 2), "*")
    shown = standings()
    assert result([(undecided, shown)]) == "EBRank leads on data, not significantly"
    assert result([(undecided, shown), (replace(undecided, name="b"), shown)]) == both.format(0)
    monkeypatch.setitem(SCORES, "ucbrank", (0.5, 0.8, 165.0))
    assert result([(DATA, standings())]).startswith("UCBRank leads on data, not significantly;")


def test_the_title_of_a_report_about_auto_alone() -> None:
    alone = replace(DATA, findings=(replace(DATA.findings[0], ours=True),))
    title = summary.title(document(datasets=(alone,)))
    assert title == "auto, with nothing to tune, on data: 1 confirmed"
    assert summary.title(reproduction()).startswith("EBRank leads on data")
