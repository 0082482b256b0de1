"""`ebrank items` and `features`, in a store and through a server.

`tests/service/core/test_deletions.py` has what `ebrank delete` deletes.
"""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebrank import Client
from ebrank.client import calls
from ebrank.service.store import open
from tests.cli.commands import answered, ebrank, good, refused
from tests.threaded import Threaded

NDJSON = '{"id": "sencha", "features": {"stock": 12, "weight": null}}\n{"id": "assam"}\n'


def put(name: str, store: str = "store") -> tuple[int, str, str]:
    """Put a file of items; return the exit code, and what was printed."""
    done = ebrank("items", "put", store, name)
    return done.exit_code, done.stdout, done.stderr


def counts(changed: int, unchanged: int, rejected: int) -> str:
    return f"{changed} items changed, {unchanged} unchanged, {rejected} rejected\n"


def catalog() -> dict[str, list[float | None]]:
    """Return the catalog of the store: the features of each item."""

    async def read() -> dict[str, list[float | None]]:
        async with open("store", "read") as store:
            return {
                name: [None if math.isnan(value) else float(value) for value in row]
                async for name, row in store.catalog.entries()
            }

    return asyncio.run(read())


def test_a_file_of_each_kind() -> None:
    def lacking() -> dict[str, tuple[int, int]]:
        features = answered("features", "store")["features"]
        return {feature["name"]: (feature["items"], feature["lacking"]) for feature in features}

    Path("a.ndjson").write_text(NDJSON)
    assert put("a.ndjson") == (0, counts(2, 0, 0), "")
    assert lacking() == {"stock": (2, 1), "weight": (2, 2)}
    Path("b.csv").write_text('id,stock,weight\nsencha,12,\n"oo,long",3,0.5\nmate,many,1\n')
    code, stdout, stderr = put("b.csv")
    assert (code, stdout) == (1, counts(1, 1, 1))
    assert stderr.startswith("line 4: Expected `float | null`, got `str`")
    table = {"id": ["mate", "assam"], "weight": [1.5, None], "stock": [4, 5]}
    pq.write_table(pa.table(table), "c.parquet")
    document = answered("items", "put", "store", "c.parquet")
    assert document == {"lines": 2, "changed": 2, "unchanged": 0, "rejected": 0, "errors": []}
    assert lacking() == {"stock": (4, 0), "weight": (4, 2)}


@pytest.mark.parametrize(
    ("content", "changed", "line", "stored"),
    [
        pytest.param(
            b"stock,id\n3,1\n4,007\n2,1e5\n1,abc\n0,\n",
            4,
            "line 6: Expected `str` of length >= 1",
            {"007": [4.0], "1": [3.0], "1e5": [2.0], "abc": [1.0]},
            id="ids stay as they are written",
        ),
        pytest.param(
            b'\xef\xbb\xbfid,stock\r\n"two\r\nlines",1\r\n\r\nb,\r\nc,many\r\n',
            2,
            "line 6: Expected `float | null`, got `str`",
            {"b": [], "two\r\nlines": [1.0]},
            id="as spreadsheets write it",
        ),
        pytest.param(
            {"id": ["a", "b", "c"], "stock": [1.0, float("nan"), float("inf")]},
            2,
            "line 3: Expected `float | null`, got `str`",
            {"a": [1.0], "b": []},
            id="not a number is missing, infinity is rejected",
        ),
        pytest.param(
            {"id": [1, 12, None], "stock": [5.0, 6.0, 7.0]},
            2,
            "line 3: Expected `str`, got `null`",
            {"1": [5.0], "12": [6.0]},
            id="whole numbers are ids",
        ),
    ],
)
def test_what_becomes_of_unusual_values(
    content: bytes | dict[str, list[object]],
    changed: int,
    line: str,
    stored: dict[str, list[float]],
) -> None:
    if isinstance(content, bytes):
        Path("a.csv").write_bytes(content)
    else:
        pq.write_table(pa.table(content), "a.parquet")
    code, stdout, stderr = put("a.csv" if isinstance(content, bytes) else "a.parquet")
    assert (code, stdout) == (1, counts(changed, 0, 1))
    assert stderr.startswith(line)
    assert catalog() == stored


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", b"id,stock\nb,1\ncaf\xe9,3\n", "3: not UTF-8: "),
        ("a.csv", b"id,caf\xe9\n", "1: not UTF-8: "),
        ("a.csv", b'id,stock\n"%s",3\n' % (b"x" * 200_000), "2: not CSV: field larger than field"),
        ("a.csv", b'id,stock\na,1\n"b,2\nc,3\n', "3: not CSV: unexpected end of data. Is there a "),
        ("a.csv", b"id,stock\na,3\nb,3,4\n", "3: 3 values, but 2 columns. Put values that hold a"),
        ("a.csv", b"id,stock,stock\na,3,4\n", "1: column 'stock' is there twice. Give each"),
        ("a.csv", b"item,x\na,1\n", " column `id` not found"),
        ("a.txt", b"", " unknown file format. Name it *.parquet, *.csv, *.tsv, *.ndjson, *.jsonl"),
        ("a.parquet", b"PAR", " not a whole Parquet file"),
    ],
)
def test_a_damaged_file_is_refused_where_the_damage_is(
    name: str, content: bytes, problem: str
) -> None:
    Path(name).write_bytes(content)
    assert refused("items", "put", "store", name).startswith(f"error: {name}:{problem}")


@pytest.mark.slow
def test_items_are_put_through_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "LINES_AT_ONCE", 3)
    rows = [json.dumps({"id": f"i{number}", "features": {"x": number}}) for number in range(10)]
    rows[7] = "{"
    Path("many.jsonl").write_text("\n".join(rows))
    with Threaded(tmp_path) as server:
        code, stdout, stderr = put("many.jsonl", server.url)
        assert (code, stdout) == (1, counts(9, 0, 1))
        assert stderr.startswith("line 8: ")
        with Client(server.url) as client:
            assert client.catalog_item("i9").features == {"x": 9.0}
            answer = client.load_catalog((f"i{number}", [number]) for number in range(10))
            assert (answer.changed, answer.unchanged) == (1, 9)
            assert client.put_catalog({"i7": {"x": 0.5}}).changed == 1
        said = refused("items", "put", "store", "many.jsonl")
        assert "another server is using this store" in said


def test_items_are_listed_and_withdrawn_in_a_store_and_through_its_server(tmp_path: Path) -> None:
    Path("a.csv").write_text("id,stock,weight\nsencha,12,\noo long,3,0.5\n")
    assert put("a.csv")[0] == 0
    with Threaded(tmp_path) as server:
        done = good("items", "withdraw", server.url, "oo long")
        assert done.stdout == "oo long: withdrawn\n"
        done = good("items", "list", server.url, "--limit", "1")
        assert "sencha" not in done.stdout
        assert "--after 'oo long'" in done.stderr
        features = {"stock": 12.0, "weight": None}
        sencha = {"id": "sencha", "features": features, "withdrawn": False}
        page = answered("items", "list", server.url, "--after", "oo long")
        assert page == {"items": [sencha], "next": None}
    done = good("items", "withdraw", "store", "oo long", "sencha")
    assert done.stdout == "oo long: was withdrawn before\nsencha: withdrawn\n"
    rows = [line.split() for line in good("items", "list", "store").stdout.splitlines()]
    assert ["sencha", "12", "withdrawn"] in rows
    done = ebrank("items", "withdraw", "store", "sencha", "nobody")
    assert (done.exit_code, done.stdout) == (2, "sencha: was withdrawn before\n")
    assert "item 'nobody' is not in the catalog" in done.stderr
    assert put("a.csv") == (0, counts(2, 0, 0), "")
    assert "withdrawn" not in good("items", "list", "store").stdout


@pytest.mark.slow
def test_the_features_of_a_served_store_are_changed_through_its_server(tmp_path: Path) -> None:
    def names(store: str) -> list[str | None]:
        return [feature["name"] for feature in answered("features", store)["features"]]

    with Threaded(tmp_path) as server:
        with Client(server.url) as client:
            client.put_items("tea", {"sencha": [0.4, 4.6], "assam": [0.2, 4.1]})
        assert names("store") == names(server.url) == [None, None]
        done = good("features", server.url, "name", "price", "rating")
        assert done.stdout.startswith("done: name price, rating: nothing else changes\n")
        said = refused("features", "store", "add", "stock")
        assert "another server is using this store" in said
        # reading may go on
        done = good("features", "store", "add", "stock", "--shared", "--dry-run")
        assert done.stdout.startswith("would add stock (shared): 0 items of the catalog lack it")
        good("features", server.url, "rename", "price", "cost")
        good("features", server.url, "add", "stock", "--shared")
        assert names("store") == ["cost", "rating", "stock"]
    good("features", "store", "add", "origin", "--shared")
    good("features", "store", "require", "origin")
    good("features", "store", "remove", "cost")
    assert names("store") == ["rating", "stock", "origin"]
    table = good("features", "store").stdout
    assert [line.split() for line in table.splitlines() if "quer" in line] == [
        ["rating", "query", "and", "item", "0", "2"],
        ["stock", "all", "queries", "optional", "0", "0"],
        ["origin", "all", "queries", "0", "0"],
    ]


def test_there_are_no_proofs_of_deletions_at_first() -> None:
    good("store", "init", "store")
    assert good("delete", "store", "--list").stdout == "Nothing has been deleted so far.\n"
    assert answered("delete", "store", "--list") == {"deletions": []}
