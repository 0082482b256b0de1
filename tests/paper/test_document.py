"""The document of a reproduction: how it is assembled, written and read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ebrank.errors import DataError
from ebrank.lab.simulation.stamps import fingerprint
from ebrank.paper.document import Document, document, headline, read_document, write_document
from ebrank.paper.framework.display import Display, Verdict
from ebrank.paper.framework.runner import FinishedDataset, ReproductionPlan


@pytest.fixture(scope="session")
def made(plan: ReproductionPlan, finished: FinishedDataset) -> Document:
    return document("ebrank reproduce --only x", "ebrank reproduce", plan, finished)


def test_everything_is_recorded(
    made: Document, plan: ReproductionPlan, finished: FinishedDataset
) -> None:
    assert list(made.displays) == [*(exhibit.name for exhibit in plan.exhibits), "tuning"]
    assert made.fingerprint == fingerprint(finished.setup.dataset)
    assert made.stands_in_for == "MQ2007"
    assert {"Reference", "Table 3: exploitation ratios"} <= {each.title for each in made.ledger}
    assert len(made.findings) == sum(len(each.findings) for each in finished.displays.values())
    assert len(made.runs) == len(finished.results)
    run = finished.setup.run("ebrank")
    result = finished.results[run]
    (ours,) = [
        each
        for each in made.runs
        if (each["ranker"], each["config"]["entering_probability"]) == (str(run.ranker), 1.0)
    ]
    assert ours["warm_ndcg"]["trials"] == result.warm_ndcg.tolist()
    assert (ours["config"]["users"], ours["sessions"]) == ("pbm", 400)


@pytest.mark.parametrize(
    ("verdict", "price"),
    [
        ("confirmed", "at the price of lists that are "),
        ("contradicted", "in lists that are "),
        ("undecided", "and its lists do not differ significantly"),
    ],
)
def test_the_headline_names_a_price_only_if_the_test_confirms_it(
    finished: FinishedDataset, verdict: Verdict, price: str
) -> None:
    findings = tuple(
        replace(each, verdict=verdict) for each in finished.displays["table2"].findings
    )
    displays = finished.displays | {"table2": Display(findings=findings)}
    said = headline(finished.setup, finished.results, displays)
    assert said.startswith("EBRank auto shows ")
    assert f"\N{NO-BREAK SPACE}%, {price}" in said
    del displays["waiting"]
    assert headline(finished.setup, finished.results, displays) == ""


def test_documents_are_read_back_as_written(made: Document, tmp_path: Path) -> None:
    write_document(made, tmp_path)
    path = tmp_path / "results.json"
    assert read_document(tmp_path) == made
    first = path.read_bytes()
    plain = json.loads(first)
    assert (plain["kind"], plain["format"]) == ("ebrank reproduce", 5)
    write_document(read_document(tmp_path), tmp_path)
    assert path.read_bytes() == first
    path.write_text(json.dumps(plain | {"displays": 3}))
    with pytest.raises(DataError, match="damaged: Expected `object`"):
        read_document(tmp_path)
    path.write_text(json.dumps(plain | {"format": 4}))
    with pytest.raises(DataError, match="the format is 4, not 5"):
        read_document(tmp_path)
