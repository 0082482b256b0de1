"""What logs are read, what is refused, and where it is said to be wrong."""

from __future__ import annotations

import gzip
import io
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebrank.addons.logs import FieldMap, Report, aggregate
from ebrank.errors import DataError, EBRankError, MissingExtraError, ParameterError
from ebrank.evidence import Behaviors

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


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(GOOD)
    return tmp_path / "log.csv"


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
    text = '{"ranking": "r9", "query": "milk", "items": ["a"]}\n'
    lists.write_text(f'{text}{{"ranking": "r1", {items}"query": "tea"}}\n')
    report, rows = counted(GOOD, lists=[lists])
    assert (rows, report.unlisted) == (ROWS, 0)
    report, rows = counted(GOOD, lists=[lists], impressions="served")
    assert (rows, report.unlisted) == ([("milk", "a", 0, 0, 1)], 2)
    table = pa.Table.from_pylist([json.loads(line) for line in lists.read_text().splitlines()])
    pq.write_table(table, tmp_path / "lists.parquet")
    assert counted(GOOD, lists=[tmp_path / "lists.parquet"])[1] == ROWS


def test_a_click_that_nobody_can_place_is_left_out_and_counted(counted: Counted) -> None:
    report, rows = counted(GOOD + "r2,tea,a,click,\n")
    assert (rows, report.unplaced) == (ROWS, 1)


def test_bad_rows_can_be_left_out(counted: Counted) -> None:
    text = GOOD + "r2,tea,a,impression,zero\n,tea,a,click,1\nr3,tea,,click,1\nr3,,a,hover,x\n"
    report, rows = counted(text, skip_bad=True)
    assert rows == ROWS
    assert report.bad == {"rank": 1, "ranking": 1, "item": 1}
    assert report.ignored == {"hover": 1}


def test_times_and_values(counted: Counted) -> None:
    _, rows = counted(TIMED, behaviors=DWELL)
    assert [row[2] for row in rows] == [0, 0, 2]


def test_columns_that_nobody_needs_may_differ_in_case_alone(counted: Counted) -> None:
    named_alike = {"Time": [1] * 3, "TIME": [2] * 3}
    assert counted(table(**named_alike), "log.parquet")[1] == counted(table(), "log.parquet")[1]


DWELL = Behaviors.parse(["click=0.5", "dwell>=30"])
TIMED = (
    "ranking,query,item,type,rank,time,value\n"
    "r,q,a,impression,1,2026-11-15T20:00:00+01:00,\nr,q,b,dwell,1,1700000000.5,31\n"
)
JSON = '{"ranking": "r", "query": "tea", "item": "i", "type": "click", "rank": 1}\n'


def table(**columns: list[Any]) -> pa.Table:
    """Return three clicks with some columns changed, or more."""
    names = {name: ["x"] * 3 for name in ("ranking", "query", "item")}
    return pa.table({**names, "type": ["click"] * 3, "rank": [1, 1, 1], **columns})


def torn() -> bytes:
    """Return a Parquet file whose schema is whole, but not its rows."""
    file = io.BytesIO()
    pq.write_table(table(item=[f"item {at}" for at in range(3)]), file)
    content = file.getvalue()
    return content[:4] + bytes(200) + content[204:]


def latin(text: str, row: str) -> bytes:
    """Return a log whose last row is no UTF-8."""
    return (text + row.replace("tea", "th\xe9")).encode("latin-1")


ROW = "r1,tea,a,impression,1\n"
REFUSED: list[tuple[str | bytes | pa.Table, str]] = [
    (f"{GOOD}r2,tea,a,impression,0\n", r"log.csv:5: column 'rank' is '0'. Ranks are whole numbers"),
    (f"{GOOD}r2,tea,a,impression,1.5\n", r"log.csv:5: column 'rank' is '1.5'"),
    (f"{GOOD}r2,tea,a,impression,\n", r"log.csv:5: column 'rank' is empty"),
    (f"{GOOD}r2,tea,,click,1\n", r"log.csv:5: column 'item' is empty. A row needs its item. Fix"),
    (f"{GOOD}r2,,a,click,1\n", r"log.csv:5: column 'query' is empty"),
    (f"{GOOD},tea,a,click,1\n", r"log.csv:5: column 'ranking' is empty"),
    (f'{GOOD}r2,tea,"a\nb",click,1\nr2,tea,a,click,-1\n', r"log.csv:7: column 'rank' is '-1'"),
    (f"{GOOD}r2,tea,a,impression\n", r"log.csv:5: 4 values, but 5 columns"),
    (f"{GOOD}r2,tea,a,impression,1,2\n", r"log.csv:5: 6 values, but 5 columns"),
    (f"{TIMED}r,q,a,click,1,yesterday,\n", r"log.csv:4: column 'time' is 'yesterday'"),
    (f"{TIMED}r,q,a,dwell,1,1,\n", r"log.csv:4: column 'value' is empty"),
    (table(rank=[1, 1, 0]), r"log.parquet: row 3: column 'rank' is 0"),
    (f'{JSON}{{"ranking":\n', r"log.ndjson:2: not JSON"),
    (JSON * 1001 + '{"ranking":\n', r"log.ndjson:1002: not JSON"),
    (JSON + '{"a":' * 5000 + "1" + "}" * 5000, r"log.ndjson:2: not JSON: maximum recursion"),
    (gzip.compress(JSON.encode() + bytes(2**25)), r"log.ndjson.gz:2: a line of 16 MB or more"),
    (b"\xef\xbb\xbf" + JSON.encode(), r"log.ndjson:1: begins with a byte order mark"),
    (latin(HEADER + ROW, ROW), r"log.csv:3: not UTF-8: .*Convert the file"),
    (latin(HEADER + ROW * 3000, ROW), r"log.csv:3002: not UTF-8: "),
    (latin(JSON, JSON), r"log.ndjson:2: not UTF-8: .*Convert the file"),
    (latin(JSON * 3000, JSON), r"log.ndjson:3001: not UTF-8: "),
    (GOOD, r"log.csv.gz: not a whole gzip file: .*leave out .gz"),
    (gzip.compress(b"{}\n" * 99)[:-9], r"log.ndjson.gz: not a whole gzip file: .*leave out .gz"),
    (GOOD.replace("query", "Item"), r"log.csv:1: columns 'Item' and 'item' differ only in case"),
    (table(Item=["y"] * 3), r"log.parquet: columns 'item' and 'Item' differ only in case"),
    (GOOD.replace("query", "q"), r"log.csv: no column 'query'; there are ranking, .*--map query="),
    (GOOD.replace("query", "item"), r"log.csv:1: column 'item' is there twice"),
    (table(item=[1.0] * 3), r"log.parquet: column 'item' has the type double, which does not fit"),
    (GOOD, r"log.txt: unknown file format"),
    ("no", r"log.parquet: not a whole Parquet file"),
    (torn(), r"log.parquet: damaged Parquet file: "),
    (f"{HEADER}r,q,a,hover,1\n", r"log.csv: no event counts: .*the log has 'hover'"),
    (GOOD, r"log\[1].csv: DuckDB takes such a name for a pattern"),
]


@pytest.mark.parametrize(("content", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_a_log_that_cannot_be_read_is_named_with_the_place(
    counted: Counted, content: str | bytes | pa.Table, why: str
) -> None:
    name = why.partition(":")[0].replace("\\", "")
    timed = isinstance(content, str) and content.startswith(TIMED)
    with pytest.raises(DataError, match=why):
        counted(content, name, **({"behaviors": DWELL} if timed else {}))


@pytest.mark.parametrize("text", [GOOD, GOOD.replace("ranking", '"ranking"')])
def test_a_byte_order_mark_is_no_part_of_a_name(counted: Counted, text: str) -> None:
    marked = b"\xef\xbb\xbf" + text.encode()
    assert counted(marked)[1] == ROWS
    assert counted(gzip.compress(marked), "log.csv.gz")[1] == ROWS
    with pytest.raises(DataError, match=r"log\.csv:5: column 'rank' is 'x'"):
        counted(marked + b"r2,tea,a,impression,x\n")


def test_columns_and_files_that_are_not_there(counted: Counted, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column 'when'"):
        counted(GOOD, fields=FieldMap.of(["time=when"]))
    (tmp_path / "empty").mkdir()
    for name, why in (("none.csv", "file not found"), ("empty", "empty folder")):
        with pytest.raises(DataError, match=why):
            aggregate([tmp_path / name], tmp_path / "out.parquet")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"impressions": "served"}, "need the lists"),
        ({"impression": "click"}, "either an impression or a behavior"),
        ({"impression": "it's"}, "no quotes"),
        ({"maps": ["querry=x"]}, r"no field 'querry'.* Did you mean query\\?"),
        ({"maps": ["query"]}, "maps nothing"),
        ({"out": "log.csv"}, "already exists"),
    ],
)
def test_what_contradicts_itself_is_refused(
    log: Path, options: dict[str, Any], why: str, tmp_path: Path
) -> None:
    out = tmp_path / options.pop("out", "evidence.parquet")
    with pytest.raises(ParameterError, match=why):
        aggregate([log], out, fields=FieldMap.of(options.pop("maps", [])), **options)


def test_folders_are_read_whole_and_neither_marks_nor_names_are_data(tmp_path: Path) -> None:
    parts = tmp_path / "log" / "query=coffee"
    parts.mkdir(parents=True)
    (parts / "part-1.csv").write_text(GOOD)
    (parts / "part-2.csv").write_text("rank,type,item,query,ranking\n1,click,a,tea,r5\n")
    pq.write_table(table(query=["tea"] * 3), parts / "part-3.parquet")
    (parts / "_SUCCESS").touch()
    report = aggregate([tmp_path / "log"], tmp_path / "evidence.parquet")
    assert (report.events, report.outcomes) == (7, {"click": 3})
    assert set(pq.read_table(tmp_path / "evidence.parquet")["query"].to_pylist()) == {"tea"}


def test_a_column_may_begin_late_or_in_another_file(counted: Counted, tmp_path: Path) -> None:
    click = {"ranking": "r", "query": "q", "item": "i", "type": "click", "rank": 1}
    log = '{"type": "login"}\n' * 1500 + json.dumps(click) + "\n"
    report, rows = counted(log, "log.ndjson")
    assert (report.ignored, len(rows)) == ({"login": 1500}, 2)
    (tmp_path / "short.ndjson").write_text('{"type": "login"}\n')
    files = [tmp_path / "short.ndjson", tmp_path / "log.ndjson"]
    assert aggregate(files, tmp_path / "both.parquet").ignored == {"login": 1501}


def test_the_file_is_private_and_nothing_else_is_left(log: Path, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    aggregate([log], tmp_path / "evidence.parquet", spill=spill)
    assert stat.S_IMODE((tmp_path / "evidence.parquet").stat().st_mode) == 0o600
    left = ["evidence.parquet", "log.csv", "spill"]
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert list(spill.iterdir()) == []
    log.write_text(GOOD + "r,q,a,click,x\n")
    with pytest.raises(DataError, match="column 'rank' is 'x'"):
        aggregate([log], tmp_path / "other.parquet")
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


def test_progress_is_told(log: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    aggregate([log], tmp_path / "evidence.parquet", progress=lambda *step: told.append(step))
    assert told == [(0, 3, "checking"), (1, 3, "counting"), (2, 3, "writing")]


def test_a_missing_package_is_named(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"run: pip install 'ebrank\[logs\]'"):
        counted(GOOD)
