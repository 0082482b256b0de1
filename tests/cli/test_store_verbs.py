"""`ebrank replay`, `export`, `import` and `backup`, on a store that is being served."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ebrank.cli import root
from ebrank.service.store.sqlite import SqliteStore
from ebrank.testing.histories import fill
from tests.service.store import blocking
from tests.service.store.blocking import Blocking


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Blocking]:
    monkeypatch.chdir(tmp_path)
    opened = Blocking(SqliteStore("store"))
    blocking.run(fill(opened.wrapped))
    yield opened
    opened.close()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments, prog_name="ebrank")


def good(*arguments: str) -> str:
    done = run(*arguments)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return done.stdout


def test_replay_of_a_store_that_is_served(store: Blocking) -> None:
    line = "equal: 5 items of 2 queries, 5 events and 3 rankings replayed\n"
    assert good("replay", "store") == line
    document = json.loads(good("replay", "store", "--json"))
    assert document == {
        "path": "store",
        "equal": True,
        "queries": 2,
        "items": 5,
        "rankings": 3,
        "events": 5,
        "different": 0,
        "differences": [],
    }


def test_replay_finds_a_counter_that_was_touched(store: Blocking) -> None:
    store.close()
    with sqlite3.connect("store/log.db") as database:
        database.execute(
            "UPDATE evidence SET count = count + 1 WHERE outcome = 0 AND slot = 2 "
            "AND (query, place) = (SELECT query, place FROM items WHERE id = 'c')"
        )
    database.close()
    done = run("replay", "store")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "not equal: 1 wrong counter; 5 items of 2 queries, 5 events and 3 rankings replayed",
        "  query 'q', item 'c': count of outcome 0 in slot 2 is 2, the log gives 1",
    ]
    document = json.loads(run("replay", "store", "--json").stdout)
    assert (document["equal"], document["different"]) == (False, 1)
    assert document["differences"][0]["counter"] == "count of outcome 0 in slot 2"


def test_there_and_back(store: Blocking) -> None:
    counts = (
        "5 items, 2 catalog, 11 evidence, 0 snapshot, 3 rankings, 5 events, 0 minutes, 0 models, "
        "0 deletions"
    )
    assert good("export", "store", "out") == f"out: {counts}\n"
    assert good("import", "out", "copy") == f"copy: {counts}\n"
    assert good("replay", "out") == good("replay", "copy") == good("replay", "store")
    rows = json.loads(good("export", "copy", "out2", "--json"))["rows"]
    assert json.loads(good("import", "out2", "copy2", "--json"))["rows"] == rows


def test_backup_to_a_file_and_to_a_folder(store: Blocking) -> None:
    assert good("backup", "store", "monday.db").startswith("monday.db: ")
    assert good("replay", "monday.db") == good("replay", "store")
    assert good("backup", "store", "folders/that/are/new.db").startswith("folders/that/are/new.db")
    assert good("replay", "folders/that/are/new.db") == good("replay", "store")
    Path("spare").mkdir()
    document = json.loads(good("backup", "store", "spare", "--json"))
    assert document == {"path": "spare/log.db", "bytes": Path("spare/log.db").stat().st_size}
    again = Blocking(SqliteStore("spare"))
    assert again.log.entries() == store.log.entries()
    again.close()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("replay", "nothing"), "nothing: no store, for there is no log.db. "),
        (("replay", "text"), "text: not a database, or damaged "),
        (("export", "store", "text"), "text: a file, not a folder. "),
        (("export", "nothing", "out"), "nothing: no store"),
        (("import", "store", "copy"), "store/export.json: no complete export "),
        (("backup", "store", "text"), "text: exists already. "),
        (("backup", "store", "text/such/file"), "text/such: cannot be made: Not a directory."),
        (("backup", "nothing", "file"), "nothing: no store"),
    ],
)
def test_mistakes_are_one_line(store: Blocking, arguments: tuple[str, ...], told: str) -> None:
    Path("text").write_text("not a database, whatever it is called\n" * 40)
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {told}")
    assert done.stderr.count("\n") == 1
