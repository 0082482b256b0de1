"""`ebrank items put`, into a store and through a server."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from ebrank import Client
from ebrank.cli import root
from ebrank.client import calls
from tests.serving import serving

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
    assert done.stderr.startswith("line 3: Expected `float | null`, got `str`")
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


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "a.txt",
            "",
            "a.txt: unsupported file type: .txt. Use a file with one of these extensions: .ndjson",
        ),
        ("a.csv", "item,x\n", "a.csv: column `id` not found"),
        ("a.parquet", "PAR", "a.parquet: not a Parquet file"),
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
    with serving(folder / "store") as server:
        done = put(server.address, "many.jsonl")
        assert (done.exit_code, done.stdout) == (1, "9 items changed, 0 unchanged, 1 rejected\n")
        assert done.stderr.startswith("line 8: ")
        with Client(server.address) as client:
            assert client.catalog_item("i9").features == {"x": 9.0}
            told = client.load_catalog((f"i{number}", [number]) for number in range(10))
            assert (told.changed, told.unchanged) == (1, 9)
            assert client.put_catalog({"i7": {"x": 0.5}}).changed == 1
            assert len(client.rank("by id", items=["i7", "i8"]).items) == 2
        refused = put("store", "many.jsonl")
        assert refused.exit_code == 2
        assert "another server is using this store" in refused.stderr
