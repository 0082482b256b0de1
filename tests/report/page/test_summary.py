"""The top of the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.report.page.summary import measures, simulated, summaries, title
from tests.report.results import reproduction, results, table2
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
    assert len(summary.table.rows) == 6
    assert len(summary.sentences) == 4
    assert [row.name for row in summary.dots] == [row.cells[0] for row in summary.table.rows]
    assert [row.name for row in summary.dots if row.focus] == ["EBRank"]
    assert summary.reference == "the paper's on MQ2007"


def test_dots_are_where_the_figures_are() -> None:
    """Cold-NDCG here is .3 to .52 ± .01, the paper's .4 and .6: the scale goes from .29 to .6."""
    (summary,) = summaries(reproduction())
    dots = {row.name: row.dots[0] for row in summary.dots}
    cold = dots["EBRank"]
    assert cold.published == 94.0
    assert cold.ours == pytest.approx(6 + 88 * (0.51 - 0.29) / 0.31, abs=0.01)
    assert cold.high - cold.ours == pytest.approx(88 * 0.01 / 0.31, abs=0.02)
    assert dots["UCBRank"].published is None
    assert dots["CFTopK with clicks as a feature"].low == 6.0


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
