"""`ebrank items put`, into a store and through a server."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from ebrank import Client
from ebrank.cli import root
from ebrank.client import calls
from ebrank.service.store import open
from tests.threaded import Threaded

NDJSON = '{"id": "sencha", "features": {"stock": 12, "weight": null}}\n{"id": "assam"}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["items", "put", *arguments], prog_name="ebrank")


def features() -> dict[str, tuple[int, int]]:
    done = CliRunner().invoke(root, ["features", "store", "--json"], prog_name="ebrank")
    told = json.loads(done.stdout)["features"]
    return {one["name"]: (one["items"], one["lacking"]) for one in told}


def test_a_file_of_each_kind() -> None:
    Path("a.ndjson").write_text(NDJSON)
    done = put("store", "a.ndjson")
    assert (done.exit_code, done.stdout) == (0, "2 items changed, 0 unchanged, 0 rejected\n")
    assert features() == {"stock": (2, 1), "weight": (2, 2)}
    Path("b.csv").write_text('id,stock,weight\nsencha,12,\n"oo,long",3,0.5\nmate,many,1\n')
    done = put("store", "b.csv")
    assert (done.exit_code, done.stdout) == (1, "1 items changed, 1 unchanged, 1 rejected\n")
    assert done.stderr.startswith("line 4: Expected `float | null`, got `str`")
    table = {"id": ["mate", "assam"], "weight": [1.5, None], "stock": [4, 5]}
    pq.write_table(pa.table(table), "c.parquet")
    done = put("store", "c.parquet", "--json")
    assert json.loads(done.stdout) == {
        "lines": 2,
        "changed": 2,
        "unchanged": 0,
        "rejected": 0,
        "errors": [],
    }
    assert features() == {"stock": (4, 0), "weight": (4, 2)}


def shared() -> dict[str, list[float | None]]:
    """Return the catalog of the store: the features of each item."""

    async def read() -> dict[str, list[float | None]]:
        async with open("store", "read") as store:
            return {
                name: [None if math.isnan(one) else float(one) for one in row]
                async for name, row in store.catalog.entries()
            }

    return asyncio.run(read())


def test_ids_stay_as_they_are_written() -> None:
    Path("a.csv").write_text("stock,id\n3,1\n4,007\n2,1e5\n1,abc\n0,\n")
    done = put("store", "a.csv")
    assert done.stdout == "4 items changed, 0 unchanged, 1 rejected\n"
    assert done.stderr.startswith("line 6: Expected `str` of length >= 1")
    assert shared() == {"007": [4.0], "1": [3.0], "1e5": [2.0], "abc": [1.0]}
    pq.write_table(pa.table({"id": [1, 12], "stock": [5.0, 6.0]}), "b.parquet")
    assert put("store", "b.parquet").stdout == "2 items changed, 0 unchanged, 0 rejected\n"
    assert shared() == {"007": [4.0], "1": [5.0], "12": [6.0], "1e5": [2.0], "abc": [1.0]}


def test_not_a_number_is_missing_and_infinity_is_rejected() -> None:
    numbers = [1.0, float("nan"), float("inf")]
    pq.write_table(pa.table({"id": ["a", "b", "c"], "stock": numbers}), "a.parquet")
    done = put("store", "a.parquet")
    assert done.stdout == "2 items changed, 0 unchanged, 1 rejected\n"
    assert done.stderr.startswith("line 3: Expected `float | null`, got `str`")
    assert shared() == {"a": [1.0], "b": []}


def test_a_csv_file_as_spreadsheets_write_it() -> None:
    Path("a.csv").write_bytes(b'\xef\xbb\xbfid,stock\r\n"two\r\nlines",1\r\n\r\nb\r\nc,many\r\n')
    done = put("store", "a.csv")
    assert done.stdout == "2 items changed, 0 unchanged, 1 rejected\n"
    assert done.stderr.startswith("line 6: Expected `float | null`, got `str`")
    assert shared() == {"b": [], "two\r\nlines": [1.0]}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"id,stock\nb,1\ncaf\xe9,3\n", "3: not UTF-8: "),
        (b"id,caf\xe9\n", "1: not UTF-8: "),
        (b'id,stock\n"%s",3\n' % (b"x" * 200_000), "2: not CSV: field larger than field limit"),
        (b'id,stock\na,1\n"b,2\nc,3\n', "3: not CSV: unexpected end of data. Is there a quote"),
        (b"id,stock\na,3\nb,3,4\n", "3: 3 values, but 2 columns. Put values that hold a comma"),
        (b"id,stock,stock\na,3,4\n", " 2 columns `stock`. Keep one of them."),
    ],
)
def test_a_damaged_csv_file_is_refused_where_the_damage_is(content: bytes, told: str) -> None:
    Path("a.csv").write_bytes(content)
    done = put("store", "a.csv")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: a.csv:{told}")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "a.txt",
            "",
            "a.txt: unsupported file type: .txt. Use a file with one of these extensions: .ndjson",
        ),
        ("a.csv", "item,x\n", "a.csv: column `id` not found"),
        ("a.parquet", "PAR", "a.parquet: not a whole Parquet file"),
    ],
)
def test_a_file_that_cannot_be_read(name: str, content: str, told: str) -> None:
    Path(name).write_text(content)
    done = put("store", name)
    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.slow
def test_through_a_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "LINES_AT_ONCE", 3)
    rows = [json.dumps({"id": f"i{number}", "features": {"x": number}}) for number in range(10)]
    rows[7] = "{"
    Path("many.jsonl").write_text("\n".join(rows))
    with Threaded(folder) as server:
        done = put(server.url, "many.jsonl")
        assert (done.exit_code, done.stdout) == (1, "9 items changed, 0 unchanged, 1 rejected\n")
        assert done.stderr.startswith("line 8: ")
        with Client(server.url) as client:
            assert client.catalog_item("i9").features == {"x": 9.0}
            told = client.load_catalog((f"i{number}", [number]) for number in range(10))
            assert (told.changed, told.unchanged) == (1, 9)
            assert client.put_catalog({"i7": {"x": 0.5}}).changed == 1
        refused = put("store", "many.jsonl")
        assert refused.exit_code == 2
        assert "another server is using this store" in refused.stderr


def items(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["items", *arguments], prog_name="ebrank")


def test_items_are_listed_and_withdrawn_in_a_store_and_through_its_server(tmp_path: Path) -> None:
    Path("a.csv").write_text("id,stock,weight\nsencha,12,\noo long,3,0.5\n")
    assert put("store", "a.csv").exit_code == 0
    with Threaded(tmp_path) as server:
        done = items("withdraw", server.url, "oo long")
        assert (done.exit_code, done.stdout) == (0, "oo long: withdrawn\n")
        done = items("list", server.url, "--limit", "1")
        assert "sencha" not in done.stdout
        assert "--after 'oo long'" in done.stderr
        told = json.loads(items("list", server.url, "--after", "oo long", "--json").stdout)
        assert told == {
            "items": [
                {"id": "sencha", "features": {"stock": 12.0, "weight": None}, "withdrawn": False}
            ],
            "next": None,
        }
    done = items("withdraw", "store", "oo long", "sencha")
    assert done.stdout == "oo long: was withdrawn before\nsencha: withdrawn\n"
    rows = [line.split() for line in items("list", "store").stdout.splitlines() if "12" in line]
    assert rows == [["sencha", "12", "withdrawn"]]
    refused = items("withdraw", "store", "sencha", "nobody")
    assert refused.stdout == "sencha: was withdrawn before\n"
    assert refused.exit_code == 2
    assert "item 'nobody' is not in the catalog" in refused.stderr
    assert items("list", "store", "--limit", "0").exit_code == 2
    assert put("store", "a.csv").stdout == "2 items changed, 0 unchanged, 0 rejected\n"
    assert "withdrawn" not in items("list", "store").stdout
