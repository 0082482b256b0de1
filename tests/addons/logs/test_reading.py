"""Evidence in memory, beside features."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebrank import EBRanker
from ebrank.addons.logs import aggregate, read_evidence
from ebrank.errors import DataError
from tests.addons.logs.replaying import write

LOG = """ranking,query,item,type,rank,time
r1,tea,a,impression,1,50
r1,tea,b,impression,2,50
r1,tea,b,click,,60
r2,Tee,a,impression,1,40
r2,Tee,b,impression,12,40
r3,milk,c,click,3,70
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    aggregate([tmp_path / "log.csv"], tmp_path / "evidence.parquet")
    return tmp_path / "evidence.parquet"


def features(folder: Path, text: str) -> Path:
    (folder / "items.csv").write_text(text)
    return folder / "items.csv"


def test_items_of_queries_stand_together(file: Path) -> None:
    evidence = read_evidence(file)
    assert evidence.queries == ["Tee", "milk", "tea"]
    assert evidence.pointers.tolist() == [0, 2, 3, 5]
    assert evidence.items == ["a", "b", "c", "a", "b"]
    assert evidence.stats.shown.tolist() == [1, 1, 1, 1, 1]
    assert evidence.stats.clicks.tolist() == [0, 0, 1, 0, 1]
    assert evidence.first_shown.tolist() == [40.0, 40.0, 70.0, 50.0, 50.0]
    assert evidence.last_time == 70.0
    with pytest.raises(DataError, match="no features"):
        evidence.scaled()


def test_features_of_items_fit_a_ranker(file: Path, tmp_path: Path) -> None:
    table = features(tmp_path, "item,price,rating\na,1,0.5\nb,3,\nc,2,1\nunseen,9,9\n")
    evidence = read_evidence(file, features=table)
    assert evidence.feature_names == ("price", "rating")
    assert evidence.features is not None
    assert evidence.features[:, 0].tolist() == [1, 3, 2, 1, 3]
    assert np.isnan(evidence.features[1, 1])
    whole = read_evidence(file, features=features(tmp_path, "item,price\na,1\nb,3\nc,2\n"))
    assert whole.scaled().ravel().tolist() == [0, 1, 0, 0, 1]
    ranker = EBRanker("ebrank", epsilon=1.0).fit(whole.scaled(), whole.stats)
    assert ranker.rank(whole.scaled()[3:], whole.stats[3:]).order.tolist() == [1, 0]


def test_features_of_query_and_item_name_candidates_that_nobody_saw(
    file: Path, tmp_path: Path
) -> None:
    text = "item,query,x\na,tea,1\nb,tea,2\nnew,tea,3\na,Tee,4\nb,Tee,5\nc,milk,6\nd,water,7\n"
    evidence = read_evidence(file, features=features(tmp_path, text))
    assert evidence.queries == ["Tee", "milk", "tea", "water"]
    assert evidence.items == ["a", "b", "c", "a", "b", "new", "d"]
    assert evidence.features is not None
    assert evidence.features.ravel().tolist() == [4, 5, 6, 1, 2, 3, 7]
    assert evidence.stats.shown.tolist() == [1, 1, 1, 1, 1, 0, 0]


def test_items_without_features_are_refused_or_dropped(file: Path, tmp_path: Path) -> None:
    table = features(tmp_path, "item,x\na,1\n")
    with pytest.raises(DataError, match=r"items\.csv: no features for item 'b' and 2 others"):
        read_evidence(file, features=table)
    left = read_evidence(file, features=table, missing="drop")
    assert (left.queries, left.items) == (["Tee", "tea"], ["a", "a"])
    assert left.pointers.tolist() == [0, 1, 2]


NAMES = ("007", "1.10", "true", "2026-11-15", "NA", "null", "1e3")


@pytest.mark.parametrize("form", ["csv", "tsv", "ndjson", "parquet"])
@pytest.mark.parametrize("name", NAMES)
def test_names_stay_as_they_are_written(tmp_path: Path, name: str, form: str) -> None:
    (tmp_path / "log.csv").write_text(f"ranking,query,item,type,rank\nr1,{name},{name},click,1\n")
    aggregate([tmp_path / "log.csv"], tmp_path / "evidence.parquet")
    table = write(tmp_path / f"items.{form}", [{"query": name, "item": name, "x": 0.5}])
    evidence = read_evidence(tmp_path / "evidence.parquet", features=table)
    assert (evidence.queries, evidence.items) == ([name], [name])
    assert evidence.stats.clicks.tolist() == [1]


def test_whole_numbers_are_names_in_json_too(tmp_path: Path) -> None:
    event = {"ranking": 1, "query": 2, "item": 7, "type": "click", "rank": 1}
    (tmp_path / "log.ndjson").write_text(json.dumps(event) + "\n")
    file, table = tmp_path / "evidence.parquet", tmp_path / "items.ndjson"
    aggregate([tmp_path / "log.ndjson"], file)
    table.write_text('{"query": 2, "item": 7, "x": 1}\n')
    assert read_evidence(file, features=table).pairs() == [("2", "7")]
    for other in ("7.5", "true"):
        table.write_text(f'{{"item": {other}, "x": 1}}\n')
        with pytest.raises(DataError, match=r"column 'item' is .*Names are texts or whole num"):
            read_evidence(file, features=table)


@pytest.mark.parametrize("missing", ["refuse", "drop"])
@pytest.mark.parametrize("text", ["item,x\nA,1\n", "item,query,x\na,coffee,1\n"])
def test_a_table_that_fits_nothing_is_refused(
    file: Path, tmp_path: Path, text: str, missing: Literal["refuse", "drop"]
) -> None:
    with pytest.raises(DataError, match=r"no features for anything in .*exactly as in the log"):
        read_evidence(file, features=features(tmp_path, text), missing=missing)


def test_files_of_two_months_add_up(file: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text(
        "ranking,query,item,type,rank,time\nr4,tea,b,click,2,30\nr4,milk,a,impression,1,30\n"
    )
    aggregate([tmp_path / "more.csv"], tmp_path / "more.parquet")
    both = pa.concat_tables([pq.read_table(file), pq.read_table(tmp_path / "more.parquet")])
    for table in (both, both.take(list(reversed(range(len(both)))))):
        pq.write_table(table, tmp_path / "both.parquet")
        evidence = read_evidence(tmp_path / "both.parquet")
        assert evidence.queries == ["Tee", "milk", "tea"]
        assert evidence.pointers.tolist() == [0, 2, 4, 6]
        assert evidence.items == ["a", "b", "a", "c", "a", "b"]
        assert evidence.stats.shown.tolist() == [1, 1, 1, 1, 1, 2]
        assert evidence.stats.clicks.tolist() == [0, 0, 0, 1, 0, 2]
        assert evidence.first_shown.tolist() == [40.0, 40.0, 30.0, 70.0, 50.0, 30.0]
    full = changed(both, "count", [2**31 - 1] * len(both))
    overflowing = changed(both, "count", [2**62] * len(both))  # four times that is 0
    for parts in ([full, both], [overflowing] * 4):
        pq.write_table(pa.concat_tables(parts), tmp_path / "full.parquet")
        with pytest.raises(DataError, match=r"full\.parquet: a count would exceed"):
            read_evidence(tmp_path / "full.parquet")


def changed(table: pa.Table, column: str, values: list[int]) -> pa.Table:
    """Return a table with other values in a column."""
    at, kept = table.schema.get_field_index(column), table.schema.field(column)
    return table.set_column(at, kept, pa.array(values, pa.int64()))


def test_queries_that_become_one_are_added_up(file: Path, tmp_path: Path) -> None:
    table = features(tmp_path, "item,x\na,1\nb,2\nc,3\n")
    evidence = read_evidence(file, features=table).renamed(
        lambda name: "tea" if name == "Tee" else name
    )
    assert evidence.queries == ["milk", "tea"]
    assert evidence.items == ["c", "a", "b"]
    assert evidence.stats.shown.tolist() == [1, 2, 2]
    assert evidence.stats.counts[2, 0, [1, 10]].tolist() == [1, 1]
    assert evidence.first_shown.tolist() == [70.0, 40.0, 40.0]
    assert evidence.features is not None
    assert evidence.features.ravel().tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("items.csv", "query,x\ntea,1\n", "no column 'item'"),
        ("items.csv", "item,query\na,tea\n", "no features: all columns are names"),
        ("items.csv", "item,x\na,cheap\n", ":2: column 'x' is 'cheap'. Features are finite"),
        ("items.csv", "item,x\na,1\na,2\n", "item 'a' has two rows of features"),
        ("items.csv", "item,x\na,1\n,2\n", ":3: column 'item' is empty. Names are texts"),
        ("items.csv", "item,x\na,inf\n", ":2: column 'x' is 'inf'"),
        ("items.csv", "item,x\n", "no rows"),
        ("items.csv", "item,x,x\na,1,2\n", "column 'x' is there twice"),
        ("items.csv", "item,x\na,1\n\xe9,2\n", ":3: not UTF-8: .*Convert the file to UTF-8"),
        ("items.csv", "item,\xe9\na,1\n", ":1: not UTF-8: "),
        ("i.ndjson", '{"item": "a", "x": 1}\n{"item": "\xe9", "x": 1}\n', ":2: not UTF-8: "),
        ("i.ndjson", '{"item": "a", "\xe9": 1}\n', ":1: not UTF-8: "),
    ],
)
def test_a_table_of_features_that_is_none(
    file: Path, tmp_path: Path, name: str, text: str, why: str
) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=why) as caught:
        read_evidence(file, features=tmp_path / name)
    assert caught.value.path == str(tmp_path / name)


def test_files_that_are_no_evidence(file: Path, tmp_path: Path) -> None:
    table = pq.read_table(file)
    pq.write_table(table.replace_schema_metadata(None), tmp_path / "bare.parquet")
    with pytest.raises(DataError, match="does not say what was counted"):
        read_evidence(tmp_path / "bare.parquet")
    pq.write_table(table.drop_columns(["first"]), tmp_path / "short.parquet")
    with pytest.raises(DataError, match="its columns are not those of evidence"):
        read_evidence(tmp_path / "short.parquet")
    for column, value in (("slot", 16), ("outcome", 2), ("count", 0), ("count", 2**31)):
        values = table[column].to_pylist()
        values[1] = value
        pq.write_table(changed(table, column, values), tmp_path / "wrong.parquet")
        with pytest.raises(DataError, match=r"row 2 counts something unknown|would exceed"):
            read_evidence(tmp_path / "wrong.parquet")
