"""Sentences: each says what the figures say, and changes with them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.experiments.exhibits.table2 import HINGES
from ebrank.report.page.sentences import concatenation, leaders, sentences, waits
from ebrank.report.page.standings import standings
from tests.report.results import FINDINGS, MEDIANS, NAME, SCORES, results, table2, waiting


def test_who_is_first_by_how_much_and_whether_it_is_luck() -> None:
    warm, cum = leaders(standings(table2(), NAME))
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
    warm, _ = leaders(standings(table2(), NAME))
    assert "PRIOR is first in Warm-NDCG with .900, .100 ahead of UCBRank" in warm
    assert "EBRank has .790." in warm


def test_what_concatenation_costs() -> None:
    found = standings(table2(), NAME)
    start = (
        "Behavior concatenated as a feature changes Cold-NDCG by −.110 on average over 2 rankers, "
        "at worst from .500 to .300 (CFTopK)."
    )
    one, other = FINDINGS
    for findings, verdict in (
        ((one, other), " A loss is confirmed for CFTopK. It is undecided for PDGD."),
        ((one,), " A loss is confirmed for CFTopK."),
        ((other,), " It is undecided for PDGD."),
        ((), ""),
    ):
        assert list(concatenation(found, findings)) == [f"{start}{verdict} {HINGES}."]


def test_who_waits_how_long() -> None:
    assert list(waits(waiting())) == [
        "The median new relevant item waits for its first impression, in sessions of its query: "
        "0 with EBRank and UCBRank. CFTopK with clicks as a feature shows fewer than "
        "half of these items before the end."
    ]
    assert list(waits(replace(waiting(), rows=()))) == []


def test_the_shortest_wait_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MEDIANS, "ebrank", (3.0, None))
    monkeypatch.delitem(MEDIANS, "cftopk:features=concate")
    (sentence,) = waits(waiting())
    assert sentence.endswith("in sessions of its query: 0 with UCBRank, 3 with EBRank.")


def test_of_what_was_not_run_nothing_is_said() -> None:
    assert sentences(replace(results(), tables=()), {}) == []
    assert len(sentences(results(), standings(table2(), NAME))) == 4
