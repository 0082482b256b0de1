"""`ebrank features`, on a store and on a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ebrank import Client
from ebrank.cli import root
from tests.threaded import Threaded


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["features", *arguments], prog_name="ebrank")


def good(*arguments: str) -> str:
    done = run(*arguments)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    return done.stdout


def empty(folder: Path) -> str:
    """Return where a store is that has just been made."""
    store = str(folder / "store")
    CliRunner().invoke(root, ["store", "init", store], prog_name="ebrank")
    return store


def names(*arguments: str) -> list[str | None]:
    """Return the names of the features that a call tells of."""
    return [feature["name"] for feature in json.loads(good(*arguments, "--json"))["features"]]


@pytest.mark.slow
def test_a_served_store_is_changed_through_its_server(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with Threaded(tmp_path) as server:
        with Client(server.url) as client:
            client.put_items("tea", {"sencha": [0.4, 4.6], "assam": [0.2, 4.1]})
        assert names(store) == names(server.url) == [None, None]
        assert good(server.url, "name", "price", "rating").startswith(
            "done: name price, rating: nothing else changes\n"
        )
        refused = run(store, "add", "stock")
        assert refused.exit_code == 2
        assert "another server is using this store" in refused.stderr
        told = good(store, "add", "stock", "--shared", "--dry-run")  # reading may go on
        assert told.startswith("would add stock (shared): 0 items of the catalog lack it")
        good(server.url, "rename", "price", "cost")
        assert names(store) == ["cost", "rating"]
    good(store, "add", "stock", "origin", "--shared")
    good(store, "require", "origin")
    good(store, "remove", "cost")
    assert names(store) == ["rating", "stock", "origin"]
    table = good(store)
    assert [line.split() for line in table.splitlines() if "quer" in line] == [
        ["rating", "query", "and", "item", "0", "2"],
        ["stock", "all", "queries", "optional", "0", "0"],
        ["origin", "all", "queries", "0", "0"],
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["show", "price"], "show takes no names"),
        (["add"], "add takes at least one name"),
        (["rename", "price"], "rename takes an old name and a new one"),
        (["remove", "price", "--shared"], "--shared works only with add"),
        (["drop", "price"], "'drop' is not one of"),
    ],
)
def test_what_makes_no_sense_is_told(arguments: list[str], told: str) -> None:
    done = run("store", *arguments)
    assert done.exit_code == 2
    assert told in done.output


def test_a_feature_that_is_not_there(tmp_path: Path) -> None:
    store = empty(tmp_path)
    good(store, "add", "price")
    done = run(store, "remove", "prize")
    assert (done.exit_code, done.stderr) == (
        2,
        "error: there is no feature 'prize', only price\n",
    )


def test_a_path_without_a_store_is_refused_and_stays_without(tmp_path: Path) -> None:
    done = run(str(tmp_path / "typo"), "add", "price")
    assert done.exit_code == 2
    assert "typo: no store, for there is no log.db. Name the folder that was served" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["add", ""], "add[0].name"),
        (["remove", "price", ""], "remove[1]"),
        (["name", "long" * 1000], "name[0]"),
        (["rename", "", "price"], "rename"),
    ],
)
def test_a_name_that_a_server_would_refuse_is_refused(
    tmp_path: Path, arguments: list[str], field: str
) -> None:
    store = empty(tmp_path)
    done = run(store, *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {field}: Expected `str` of length ")
    assert names(store) == []
