from __future__ import annotations

import json
from pathlib import Path

import pytest

from ebrank.errors import DataError
from ebrank.experiments import assembly
from ebrank.experiments.document import (
    RESULTS,
    Document,
    read_document,
    read_times,
    write_document,
    write_times,
)
from ebrank.experiments.framework.runner import FinishedDataset, ReproductionPlan


@pytest.fixture(scope="session")
def document(plan: ReproductionPlan, finished: FinishedDataset) -> Document:
    part = assembly.dataset_part("x", plan, finished, several=False)
    return assembly.document("ebrank reproduce", plan, [part])


def test_documents_are_read_back_as_written(document: Document, tmp_path: Path) -> None:
    path = write_document(document, tmp_path)
    assert read_document(tmp_path) == document
    plain = json.loads(path.read_text())
    assert (plain["kind"], plain["format"]) == ("ebrank reproduce", 3)
    assert write_document(read_document(tmp_path), tmp_path).read_text() == path.read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "results.json: no such file"),
        ("", "not the results of a reproduction"),
        ("[]", "not the results of a reproduction"),
        ('{"kind": "ebrank simulate"}', "not the results of a reproduction"),
        ('{"kind": "ebrank reproduce", "format": 99}', "the format is 99, not 3"),
        ('{"kind": "ebrank reproduce", "format": 3, "seed": "x"}', "not a Document"),
    ],
)
def test_other_files_are_rejected(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / RESULTS).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_document(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / RESULTS))


def test_a_document_that_lacks_something_is_refused(document: Document, tmp_path: Path) -> None:
    path = write_document(document, tmp_path)
    plain = json.loads(path.read_text())
    del plain["datasets"][0]["runs"][0]["warm"]
    path.write_text(json.dumps(plain))
    with pytest.raises(
        DataError, match=r"missing required field `warm` - at `\$.datasets\[0\].runs"
    ):
        read_document(tmp_path)
    path.write_text(json.dumps(plain | {"datasets": []}))
    with pytest.raises(DataError, match=r"results.json: datasets is empty"):
        read_document(tmp_path)


def test_times_are_beside_it_or_not(tmp_path: Path) -> None:
    assert read_times(tmp_path) is None
    write_times({"kind": "ebrank reproduce", "jobs": 2}, tmp_path)
    assert read_times(tmp_path) == {"kind": "ebrank reproduce", "jobs": 2}
    (tmp_path / "times.json").write_text("{}")
    assert read_times(tmp_path) is None
