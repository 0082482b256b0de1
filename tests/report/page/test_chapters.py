"""How the page is divided."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.outcome import Figure
from ebrank.report.page.chapters import chapters, identifier, ledger_chapters
from tests.report.sample import PERFORMANCE, dataset, document


def test_exhibits_follow_the_experiments_with_a_figures_table_beside_it() -> None:
    names = ("tuning", "time", "table3", "ablation-x")
    data = replace(
        dataset("d"),
        tables=tuple(replace(PERFORMANCE, name=name) for name in names),
        figures=tuple(Figure(name, name, "", ()) for name in ("ablation", "time")),
    )
    only = ("table2", "table3", "time", "ablation")
    shared, own = chapters(document(datasets=(data,), only=only))
    assert [one.id for one in shared.exhibits] == ["table2"]
    assert [one.id for one in own.exhibits] == [
        "table3",
        "time",
        "ablation",
        "ablation-x",
        "tuning",
    ]
    time = own.exhibits[1]
    assert time.figure is not None
    assert [table.name for table in time.tables] == ["time"]


def test_the_ledger_does_not_repeat_the_findings() -> None:
    own, missing = ledger_chapters(document())
    assert [section.title for section in own.sections] == ["Table 2", "Table 1"]
    assert missing.title == "Not at hand"


@given(st.text(max_size=8), st.text(max_size=8))
def test_other_names_have_other_ids(one: str, other: str) -> None:
    assert (identifier(one) == identifier(other)) == (one == other)
    assert set(identifier(one)) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    )
