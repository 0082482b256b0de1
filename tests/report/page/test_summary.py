"""The top of the page."""

from __future__ import annotations

from dataclasses import replace

from ebrank.report.page.summary import simulated, summaries
from tests.report.results import reproduction, results, table2
from tests.report.sample import document


def test_it_shows_warm_and_cum_of_the_rankers_in_its_table() -> None:
    (summary,) = summaries(reproduction())
    assert [panel.partition("<title>")[2].partition("<")[0] for panel in summary.panels] == [
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
