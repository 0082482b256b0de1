"""What logs are read, what is refused, and where it is said to be wrong."""

from __future__ import annotations

import gzip
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebrank.errors import DataError, EBRankError, MissingExtraError, ParameterError
from ebrank.evidence import Behaviors
from ebrank.logs import UBI, FieldMap, Report, aggregate, engines

HEADER = "ranking,query,item,type,rank\n"
GOOD = HEADER + "r1,tea,a,impression,1\nr1,tea,b,impression,2\nr1,tea,b,click,\n"


@pytest.fixture
def counted(tmp_path: Path) -> Callable[..., tuple[Report, list[tuple[Any, ...]]]]:
    """Aggregate a text or a table, and return the report and the rows."""

    def run(
        content: str | bytes | pa.Table,
        name: str = "log.csv",
        **options: Any,  # noqa: ANN401
    ) -> tuple[Report, list[tuple[Any, ...]]]:
        path = tmp_path / name
        if isinstance(content, str):
            path.write_text(content)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pq.write_table(content, path)
        out = tmp_path / "evidence.parquet"
        report = aggregate([path], out, threads=1, **options)
        rows = [tuple(row.values())[:5] for row in pq.read_table(out).to_pylist()]
        out.unlink()
        return report, rows

    return run


Counted = Callable[..., tuple[Report, list[tuple[Any, ...]]]]
ROWS = [("tea", "a", 0, 0, 1), ("tea", "b", 0, 1, 1), ("tea", "b", 1, 1, 1)]


def test_a_click_takes_the_rank_of_its_impression(counted: Counted) -> None:
    report, rows = counted(GOOD)
    assert rows == ROWS
    assert (report.events, report.impressions, report.outcomes) == (3, 2, {"click": 1})


def test_columns_of_other_names_and_in_another_order(counted: Counted) -> None:
    text = "position,search_term,doc,list,what\n1,tea,a,r1,view\n2,tea,b,r1,view\n2,tea,b,r1,tap\n"
    names = ["rank=position", "query=search_term", "item=doc", "ranking=list", "type=what"]
    options = {"impression": "view", "behaviors": Behaviors.parse(["tap"])}
    assert counted(text, fields=FieldMap.of(names), **options)[1] == ROWS


def test_ranks_may_be_counted_from_0_and_written_as_numbers_with_a_point(counted: Counted) -> None:
    text = HEADER + "r1,tea,a,impression,0\nr1,tea,b,impression,1.0\nr1,tea,b,click, 1 \n"
    assert counted(text, first_rank=0)[1] == ROWS


def test_whole_numbers_are_names_too(counted: Counted) -> None:
    table = pa.table(
        {
            "ranking": [7, 7],
            "query": pa.array(["tea", "tea"]).dictionary_encode(),
            "item": [1, 2],
            "type": ["impression"] * 2,
            "rank": pa.array([1, 2], pa.uint8()),
        }
    )
    assert counted(table, "log.parquet")[1] == [("tea", "1", 0, 0, 1), ("tea", "2", 0, 1, 1)]


def test_user_behavior_insights(counted: Counted, tmp_path: Path) -> None:
    def event(action: str, item: str, ordinal: int | None) -> dict[str, Any]:
        position = {} if ordinal is None else {"position": {"ordinal": ordinal}}
        attributes = {"object": {"object_id": item, "object_id_field": "sku"}, **position}
        return {"action_name": action, "query_id": "q1", "event_attributes": attributes}

    rows = [
        {"action_name": "login", "client_id": "c"},
        event("impression", "a", 1),
        event("impression", "b", 2),
        event("click", "b", None),
        event("click", "b", None),
    ]
    log = "".join(json.dumps(row) + "\n" for row in rows)
    queries = tmp_path / "queries.ndjson"
    query = {"query_id": "q1", "user_query": "tea", "query_response_hit_ids": ["a", "b", "c"]}
    queries.write_text(json.dumps(query) + "\n")
    report, found = counted(log, "events.ndjson", fields=UBI, lists=[queries])
    assert found == ROWS
    assert report.ignored == {"login": 1}
    _, found = counted(log, "events.ndjson", fields=UBI, lists=[queries], impressions="served")
    assert found == [*ROWS[:1], *ROWS[1:], ("tea", "c", 0, 2, 1)]
    other = {"query_id": "q2", "user_query": "milk", "query_response_hit_ids": ["m"]}
    queries.write_text(
        f"{json.dumps(query | {'query_response_hit_ids': []})}\n{json.dumps(other)}\n"
    )
    assert counted(log, "events.ndjson", fields=UBI, lists=[queries])[1] == ROWS


def test_events_beside_the_lists_are_left_out_and_counted(counted: Counted, tmp_path: Path) -> None:
    lists = tmp_path / "lists.ndjson"
    lists.write_text('{"ranking": "r1", "query": "tea", "items": ["a", "b"]}\n')
    text = GOOD + "r1,tea,z,click,3\nr9,tea,a,click,1\n"
    report, rows = counted(text, lists=[lists], impressions="served")
    assert (rows, report.unlisted) == (ROWS, 2)
    report, rows = counted(GOOD + "r9,tea,a,click,1\n", lists=[lists])
    assert (rows, report.unlisted) == (ROWS, 1)


@pytest.mark.parametrize("items", ['"items": [], ', '"items": null, ', ""])
def test_lists_without_items_still_say_the_query(
    counted: Counted, tmp_path: Path, items: str
) -> None:
    lists = tmp_path / "lists.ndjson"
    lists.write_text(
        '{"ranking": "r9", "query": "milk", "items": ["a"]}\n'
        f'{{"ranking": "r1", {items}"query": "tea"}}\n'
    )
    report, rows = counted(GOOD, lists=[lists])
    assert (rows, report.unlisted) == (ROWS, 0)
    report, rows = counted(GOOD, lists=[lists], impressions="served")
    assert (rows, report.unlisted) == ([("milk", "a", 0, 0, 1)], 2)


@pytest.mark.parametrize("items", [[["a"], []], [["a"], None], [[], []]])
def test_lists_without_items_in_parquet_still_say_the_query(
    counted: Counted, tmp_path: Path, items: list[list[str] | None]
) -> None:
    lists = tmp_path / "lists.parquet"
    pq.write_table(
        pa.table({"ranking": ["r9", "r1"], "query": ["milk", "tea"], "items": items}), lists
    )
    assert counted(GOOD, lists=[lists])[1] == ROWS


def test_a_click_that_nobody_can_place_is_left_out_and_counted(counted: Counted) -> None:
    report, rows = counted(GOOD + "r2,tea,a,click,\n")
    assert (rows, report.unplaced) == (ROWS, 1)


def test_bad_rows_can_be_left_out(counted: Counted) -> None:
    text = GOOD + "r2,tea,a,impression,zero\n,tea,a,click,1\nr3,tea,,click,1\nr3,,a,hover,x\n"
    report, rows = counted(text, skip_bad=True)
    assert rows == ROWS
    assert report.bad == {"rank": 1, "ranking": 1, "item": 1}
    assert report.ignored == {"hover": 1}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("r2,tea,a,impression,0", "log.csv:5: column 'rank' is '0'. Ranks are whole numbers"),
        ("r2,tea,a,impression,1.5", "log.csv:5: column 'rank' is '1.5'"),
        ("r2,tea,a,impression,", "log.csv:5: column 'rank' is empty"),
        ("r2,tea,,click,1", "log.csv:5: column 'item' is empty. A row needs its item. Fix it, or"),
        ("r2,,a,click,1", "log.csv:5: column 'query' is empty"),
        (",tea,a,click,1", "log.csv:5: column 'ranking' is empty"),
        ('r2,tea,"a\nb",impression,1\nr2,tea,a,click,-1', "log.csv:7: column 'rank' is '-1'"),
        ("r2,tea,a,impression", "log.csv:5: 4 values, but 5 columns"),
        ("r2,tea,a,impression,1,2", "log.csv:5: 6 values, but 5 columns"),
    ],
)
def test_a_bad_row_is_named(counted: Counted, row: str, why: str) -> None:
    with pytest.raises(DataError) as problem:
        counted(f"{GOOD}{row}\n")
    assert why in str(problem.value)


def test_bad_times_and_values_are_named(counted: Counted) -> None:
    head = "ranking,query,item,type,rank,time,value\n"
    good = "r,q,a,impression,1,2026-11-15T20:00:00+01:00,\nr,q,b,dwell,1,1700000000.5,31\n"
    behaviors = Behaviors.parse(["click=0.5", "dwell>=30"])
    _, rows = counted(head + good, behaviors=behaviors)
    assert [row[2] for row in rows] == [0, 0, 2]
    with pytest.raises(DataError, match=r"log\.csv:4: column 'time' is 'yesterday'"):
        counted(f"{head}{good}r,q,a,click,1,yesterday,\n", behaviors=behaviors)
    with pytest.raises(DataError, match=r"log\.csv:4: column 'value' is empty"):
        counted(f"{head}{good}r,q,a,dwell,1,1,\n", behaviors=behaviors)


def test_the_row_of_a_parquet_file_is_named(counted: Counted) -> None:
    columns = {name: ["x"] * 3 for name in ("ranking", "query", "item")}
    table = pa.table({**columns, "type": ["click"] * 3, "rank": [1, 1, 0]})
    with pytest.raises(DataError, match=r"log\.parquet: row 3: column 'rank' is 0"):
        counted(table, "log.parquet")


def test_a_line_that_is_no_json_is_named(counted: Counted) -> None:
    good = json.dumps({"ranking": "r", "query": "q", "item": "i", "type": "click", "rank": 1})
    with pytest.raises(DataError, match=r"log\.ndjson:2: not JSON"):
        counted(f'{good}\n{{"ranking":\n', "log.ndjson")
    with pytest.raises(DataError, match=r"log\.ndjson:1002: not JSON"):
        counted(f"{good}\n" * 1001 + '{"ranking":\n', "log.ndjson")


@pytest.mark.parametrize("text", [GOOD, GOOD.replace("ranking", '"ranking"')])
def test_a_byte_order_mark_is_no_part_of_a_name(counted: Counted, text: str) -> None:
    marked = b"\xef\xbb\xbf" + text.encode()
    assert counted(marked)[1] == ROWS
    assert counted(gzip.compress(marked), "log.csv.gz")[1] == ROWS
    with pytest.raises(DataError, match=r"log\.csv:5: column 'rank' is 'x'"):
        counted(marked + b"r2,tea,a,impression,x\n")


def test_a_byte_order_mark_in_json_is_refused(counted: Counted) -> None:
    with pytest.raises(DataError, match=r"log\.ndjson:1: begins with a byte order mark"):
        counted(b'\xef\xbb\xbf{"ranking": "r"}\n', "log.ndjson")


@pytest.mark.parametrize("good", [1, 3000])
def test_the_line_that_is_not_utf_8_is_named(counted: Counted, good: int) -> None:
    row = "r1,tea,a,impression,1\n"
    with pytest.raises(DataError, match=rf"log\.csv:{good + 2}: not UTF-8: .*Convert the file"):
        counted((HEADER + row * good + row.replace("tea", "th\xe9")).encode("latin-1"))
    row = '{"ranking":"r1","query":"tea","item":"a","type":"impression","rank":1}\n'
    with pytest.raises(DataError, match=rf"log\.ndjson:{good + 1}: not UTF-8: .*Convert the file"):
        counted((row * good + row.replace("tea", "th\xe9")).encode("latin-1"), "log.ndjson")


def test_a_file_that_is_not_gzipped_is_named(counted: Counted) -> None:
    with pytest.raises(DataError, match=r"log\.csv\.gz: not a whole gzip file: .*leave out \.gz"):
        counted(GOOD, "log.csv.gz")
    with pytest.raises(
        DataError, match=r"log\.ndjson\.gz: not a whole gzip file: .*leave out \.gz"
    ):
        counted(gzip.compress(b"{}\n" * 99)[:-9], "log.ndjson.gz")


def test_columns_that_differ_only_in_case_are_refused(counted: Counted) -> None:
    with pytest.raises(
        DataError, match=r"log\.csv:1: columns 'item' and 'Item' differ only in case"
    ):
        counted("ranking,query,item,Item,type,rank\nr,q,a,A,click,1\n")
    names = {name: ["x"] for name in ("ranking", "query", "Item", "item", "type")}
    with pytest.raises(DataError, match="columns 'Item' and 'item' differ only in case"):
        counted(pa.table({**names, "rank": [1]}), "log.parquet")


def test_columns_that_are_not_there(counted: Counted, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'query'; there are ranking, .*--map query="):
        counted("ranking,item,type,rank\nr,a,click,1\n")
    with pytest.raises(DataError, match="no column 'when'"):
        counted(GOOD, fields=FieldMap.of(["time=when"]))
    with pytest.raises(DataError, match="column 'ranking' is there twice"):
        counted("ranking,ranking\n")
    floats = pa.table({"ranking": ["r"], "query": ["q"], "item": [1.0], "type": ["click"]})
    with pytest.raises(
        DataError, match="column 'item' has the type double, which does not fit item"
    ):
        counted(floats, "log.parquet")


def test_files_that_cannot_be_read(counted: Counted, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="file not found"):
        aggregate([tmp_path / "none.csv"], tmp_path / "out.parquet")
    with pytest.raises(DataError, match="unknown file format"):
        counted(GOOD, "log.txt")
    with pytest.raises(DataError, match="not a whole Parquet file"):
        counted("no", "log.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty folder"):
        aggregate([tmp_path / "empty"], tmp_path / "out.parquet")
    with pytest.raises(DataError, match=r"no event counts: .*the log has 'hover'"):
        counted(HEADER + "r,q,a,hover,1\n")


def test_what_contradicts_itself_is_refused(counted: Counted, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="need the lists"):
        counted(GOOD, impressions="served")
    with pytest.raises(ParameterError, match="either an impression or a behavior"):
        counted(GOOD, impression="click")
    with pytest.raises(ParameterError, match="no quotes"):
        counted(GOOD, impression="it's")
    with pytest.raises(ParameterError, match=r"no field 'querry'.* Did you mean query\?"):
        FieldMap.of(["querry=x"])
    with pytest.raises(ParameterError, match="maps nothing"):
        FieldMap.of(["query"])
    (tmp_path / "there.parquet").touch()
    with pytest.raises(ParameterError, match="already exists"):
        aggregate([tmp_path], tmp_path / "there.parquet")


def test_folders_are_read_whole_and_marks_are_not_data(tmp_path: Path) -> None:
    parts = tmp_path / "log" / "day=1"
    parts.mkdir(parents=True)
    (parts / "part-1.csv").write_text(GOOD)
    (parts / "part-2.csv").write_text("rank,type,item,query,ranking\n1,click,a,tea,r5\n")
    (parts / "_SUCCESS").touch()
    report = aggregate([tmp_path / "log"], tmp_path / "evidence.parquet")
    assert (report.events, report.outcomes) == (4, {"click": 2})


def test_a_folder_whose_name_looks_like_a_column(tmp_path: Path) -> None:
    part = tmp_path / "query=coffee"
    part.mkdir()
    columns = {name: ["tea"] for name in ("ranking", "query", "item")}
    table = pa.table({**columns, "type": ["click"], "rank": [1]})
    pq.write_table(table, part / "log.parquet")
    aggregate([part], tmp_path / "evidence.parquet")
    assert pq.read_table(tmp_path / "evidence.parquet")["query"].to_pylist() == ["tea", "tea"]


def test_a_column_may_begin_late_or_in_another_file(counted: Counted, tmp_path: Path) -> None:
    click = {"ranking": "r", "query": "q", "item": "i", "type": "click", "rank": 1}
    log = '{"type": "login"}\n' * 1500 + json.dumps(click) + "\n"
    report, rows = counted(log, "log.ndjson")
    assert (report.ignored, len(rows)) == ({"login": 1500}, 2)
    (tmp_path / "short.ndjson").write_text('{"type": "login"}\n')
    files = [tmp_path / "short.ndjson", tmp_path / "log.ndjson"]
    assert aggregate(files, tmp_path / "both.parquet").ignored == {"login": 1501}


def test_names_that_engines_would_take_for_patterns_are_refused(counted: Counted) -> None:
    with pytest.raises(DataError, match=r"log\[1\]\.csv: engines take such a name for a pattern"):
        counted(GOOD, "log[1].csv")


def test_the_file_is_private_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(GOOD)
    spill = tmp_path / "spill"
    aggregate([tmp_path / "log.csv"], tmp_path / "evidence.parquet", spill=spill)
    assert stat.S_IMODE((tmp_path / "evidence.parquet").stat().st_mode) == 0o600
    left = ["evidence.parquet", "log.csv", "spill"]
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert list(spill.iterdir()) == []
    (tmp_path / "log.csv").write_text(GOOD + "r,q,a,click,x\n")
    with pytest.raises(DataError, match="column 'rank' is 'x'"):
        aggregate([tmp_path / "log.csv"], tmp_path / "other.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == left


@pytest.mark.slow
def test_a_log_larger_than_memory_is_spilled(tmp_path: Path) -> None:
    """A quarter of a million impressions in 45 MB: the same as in 4 GB."""
    import duckdb

    log = tmp_path / "log.parquet"
    duckdb.sql(
        f"""COPY (SELECT 'a list with a long name ' || (i // 10) AS ranking,
            'query ' || (i // 10 % 997) AS query, 'item ' || (hash(i) % 50) AS item,
            CASE WHEN i % 7 = 0 THEN 'click' ELSE 'impression' END AS type, 1 + i % 10 AS rank
        FROM range(250000) AS t(i)) TO '{log}'"""
    )
    small = aggregate([log], tmp_path / "small.parquet", memory=45 * 10**6, threads=2)
    large = aggregate([log], tmp_path / "large.parquet", threads=1)
    assert small.impressions == large.impressions
    assert (tmp_path / "small.parquet").read_bytes() == (tmp_path / "large.parquet").read_bytes()
    with pytest.raises(EBRankError, match="Allow more --memory"):
        aggregate([log], tmp_path / "tiny.parquet", memory=5 * 10**6, threads=1)


def test_progress_is_told(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(GOOD)
    told: list[str] = []
    aggregate(
        [tmp_path / "log.csv"],
        tmp_path / "evidence.parquet",
        progress=lambda done, total, step: told.append(step),
    )
    assert list(dict.fromkeys(told)) == ["checking", "counting", "writing"]


@pytest.mark.parametrize(
    ("engine", "module", "extra"), [("duckdb", "duckdb", "logs"), ("spark", "pyspark.sql", "spark")]
)
def test_missing_packages_are_named(
    counted: Counted,
    monkeypatch: pytest.MonkeyPatch,
    engine: engines.EngineName,
    module: str,
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"run: pip install 'ebrank\[{extra}\]'"):
        counted(GOOD, engine=engine)
