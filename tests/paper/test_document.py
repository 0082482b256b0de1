"""The document of a reproduction: how it is assembled, written and read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ebrank.evidence import Examination
from ebrank.kernels.provenance import fingerprint
from ebrank.lab.rankers import registry
from ebrank.paper import assembly
from ebrank.paper.document import (
    Document,
    read_document,
    write_document,
)
from ebrank.paper.framework.entrants import ENTRANTS
from ebrank.paper.framework.experiment import Run
from ebrank.paper.framework.outcome import Cell, Column, Row, Table
from ebrank.paper.framework.runner import FinishedDataset, ReproductionPlan


def half(dataset: str, *values: float) -> Table:
    rows = tuple(Row((f"ranker {n}", Cell(value)), "g") for n, value in enumerate(values))
    return Table("table2", "Both", "", (Column("ranker"), Column("warm", dataset)), rows)


def test_tables_of_several_datasets_stand_side_by_side() -> None:
    both = assembly.side_by_side([half("A", 0.1, 0.2), half("B", 0.3, 0.4)])
    assert both.columns == (Column("ranker"), Column("warm", "A"), Column("warm", "B"))
    assert both.rows[1] == Row(("ranker 1", Cell(0.2), Cell(0.4)), "g")
    assert assembly.side_by_side([half("A", 0.1)]) == half("A", 0.1)
    other = replace(half("B", 0.3), rows=(Row(("another", Cell(0.3)), "g"),))
    with pytest.raises(ValueError, match="rows differ: ranker 0, another"):
        assembly.side_by_side([half("A", 0.1), other])


@pytest.mark.parametrize(("several", "suffix"), [(True, "-mq2007-like-0.02"), (False, "")])
def test_several_datasets_share_two_tables_and_name_their_own(
    plan: ReproductionPlan, finished: FinishedDataset, several: bool, suffix: str
) -> None:
    part = assembly.dataset_part("x", finished, several=several)
    first, second = assembly.document("x", plan, [part, part]).tables
    assert (first.name, len(first.rows)) == ("table1", 2)
    assert (second.name, len(second.columns), len(second.rows)) == ("table2", 15, 21)
    record = part[0]
    names = [table.name for table in record.tables]
    assert (names[0], names[-1]) == (f"table3{suffix}", f"tuning{suffix}")
    assert f"time{suffix}" in [figure.name for figure in record.figures]
    assert record.fingerprint == fingerprint(finished.setup.dataset)
    assert record.stands_in_for == "MQ2007"
    assert record.ledger


def test_every_run_is_recorded_entrants_by_their_key(finished: FinishedDataset) -> None:
    records = list(assembly.run_records(finished.setup, finished.results))
    assert len(records) == len(finished.results)
    usual = [r for r in records if r.entering_probability == 1.0 and r.believed is None]
    assert {record.key for record in usual} == {"", *(each.key for each in ENTRANTS)}
    (ours,) = [record for record in usual if record.key == "ebrank"]
    result = finished.results[finished.setup.run("ebrank")]
    assert (ours.warm, ours.cum) == (tuple(result.warm_ndcg), tuple(result.cum_ndcg))
    assert (ours.ranker, ours.sessions) == (result.ranker, 400)
    assert (ours.users, ours.click_rate) == ("pbm", 1.0)


def test_a_run_is_of_the_entrant_that_was_tuned_for_its_world(finished: FinishedDataset) -> None:
    setup = finished.setup
    result = finished.results[setup.run("ebrank")]
    rare = replace(setup.config, click_rate=0.15)
    wary = replace(setup.config, believed=Examination(severity=2.0))
    chosen = {**setup.chosen, ("ebrank", rare): registry.parse("ebrank:epsilon=7")}
    for config, epsilon, key in (
        (rare, 7, "ebrank"),
        (rare, 30, ""),  # that of the usual world
        (setup.config, 7, ""),
        (wary, 30, "ebrank"),  # nobody tuned for this world
    ):
        run = Run(registry.parse(f"ebrank:epsilon={epsilon}"), config)
        (record,) = assembly.run_records(replace(setup, chosen=chosen), {run: result})
        assert (record.key, record.click_rate) == (key, config.click_rate)
        assert ("severity=2.0" in str(record.believed)) == (config is wary)


# --- results.json ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def document(plan: ReproductionPlan, finished: FinishedDataset) -> Document:
    part = assembly.dataset_part("x", finished, several=False)
    return assembly.document("ebrank reproduce", plan, [part])


def test_documents_are_read_back_as_written(document: Document, tmp_path: Path) -> None:
    path = write_document(document, tmp_path)
    assert read_document(tmp_path) == document
    plain = json.loads(path.read_text())
    assert (plain["kind"], plain["format"]) == ("ebrank reproduce", 4)
    assert write_document(read_document(tmp_path), tmp_path).read_text() == path.read_text()
