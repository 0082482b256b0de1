"""The top of the page."""

from __future__ import annotations

from dataclasses import replace

from ebrank.report.page.summary import glances, simulated
from tests.report.results import reproduction, results, table2
from tests.report.sample import document


def test_it_shows_warm_and_cum_of_the_rankers_in_its_table() -> None:
    (told,) = glances(reproduction())
    assert [panel.partition("<title>")[2].partition("<")[0] for panel in told.panels] == [
        "Performance over time: Warm-NDCG",
        "Performance over time: Cum-NDCG",
    ]
    for panel in told.panels:
        assert ">UCBRank<" in panel
        assert ">PDGD<" in panel
        assert ">MGD<" not in panel
    assert told.table is not None
    assert len(told.table.rows) == 6
    assert len(told.sentences) == 4


def test_each_part_stands_without_the_others() -> None:
    (drawn,) = glances(replace(reproduction(), tables=()))
    assert drawn.table is None
    assert ">MGD<" in drawn.panels[0]
    unseen = replace(results(), figures=())
    (tabled,) = glances(replace(reproduction(), datasets=(unseen,)))
    assert not tabled.panels
    assert tabled.table is not None
    assert glances(replace(reproduction(), tables=(), datasets=(unseen,))) == []


def test_what_was_simulated_is_told_in_words() -> None:
    assert simulated(reproduction()) == (
        "In each of 2 trials, every ranker served simulated users: 59,000 sessions on data (1,643 "
        "queries, 67,000 items; synthetic, in place of MQ2007). BM25 had served each query 20 "
        "times before. New items kept entering; rankers learned from clicks, in 10 updates."
    )
    two = (results(), replace(results(), name="real", stands_in_for=None))
    told = simulated(document(trials=1, datasets=two, tables=(table2(),)))
    assert told.startswith("In one trial, every ranker")
    assert " and 59,000 sessions on real (1,643 queries, 67,000 items)." in told
    assert simulated(document(datasets=())) == ""
