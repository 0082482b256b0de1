from __future__ import annotations

from ebrank.paper.exhibits import EXPERIMENTS, selected


def test_all_without_a_choice_and_in_one_order_whatever_is_typed() -> None:
    on_request = tuple(EXPERIMENTS[name] for name in ("beyond", "shared", "opinions"))
    assert (*selected(), *on_request) == tuple(EXPERIMENTS.values())
    assert selected("all") == selected("beyond,all") == tuple(EXPERIMENTS.values())
    assert [each.name for each in selected("time, table1,time")] == ["table1", "time"]


def test_the_paper_comes_first() -> None:
    paper = ["table1", "table2", "table3", "time", "entering", "ablation", "toy"]
    assert list(EXPERIMENTS)[: len(paper)] == paper
