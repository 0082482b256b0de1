from __future__ import annotations

import pytest

from ebrank.errors import ParameterError
from ebrank.experiments.exhibits import EXPERIMENTS, selected


def test_all_without_a_choice_and_in_one_order_whatever_is_typed() -> None:
    assert (*selected(), EXPERIMENTS["beyond"]) == tuple(EXPERIMENTS.values())
    assert selected("all") == selected("beyond,all") == tuple(EXPERIMENTS.values())
    assert [each.name for each in selected("time, table1,time")] == ["table1", "time"]


def test_extras_are_all_that_the_paper_does_not_have() -> None:
    paper = ["table1", "table2", "table3", "time", "entering", "ablation", "toy"]
    assert list(EXPERIMENTS)[: len(paper)] == paper
    assert [each.name for each in selected("extras")] == list(EXPERIMENTS)[len(paper) : -1]


def test_what_takes_long_is_run_only_on_request() -> None:
    assert [name for name, each in EXPERIMENTS.items() if each.on_request] == ["beyond"]
    assert [each.name for each in selected("beyond,table1")] == ["table1", "beyond"]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("tabel2", "no experiment is called 'tabel2'; did you mean table2? Known: table1, "),
        ("time,", "no experiment is called ''. Known: table1, "),
        ("Extra", "no experiment is called 'Extra'; did you mean extras?"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(only: str, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        selected(only)
    assert message in str(caught.value)
