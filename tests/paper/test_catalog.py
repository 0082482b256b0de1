from __future__ import annotations

from ebrank.paper.exhibits import EXHIBITS, selected


def test_all_without_a_choice_and_in_one_order_whatever_is_typed() -> None:
    on_request = tuple(EXHIBITS[name] for name in ("beyond", "shared", "opinions"))
    assert (*selected(), *on_request) == tuple(EXHIBITS.values())
    assert selected("all") == selected("beyond,all") == tuple(EXHIBITS.values())
    assert [each.name for each in selected("time, table1,time")] == ["table1", "time"]


def test_the_paper_comes_first() -> None:
    paper = ["table1", "table2", "table3", "time", "entering", "ablation", "toy"]
    assert list(EXHIBITS)[: len(paper)] == paper
