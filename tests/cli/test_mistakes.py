"""Mistakes of users: each ends in a line that names it, with exit code 2 and nothing on stdout."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.commands import good, refused, write_fold

TINY = "--dataset mq2007-like --scale 0.01"
BM25 = f"simulate --ranker bm25 {TINY}"
TUNE = f"tune {TINY} --ranker ebrank:estimator=exposure"
LOG = "aggregate log.csv --out e.parquet --map query=search"
MISTAKES = [
    (f"simulate {TINY} --ranker ebrnk", "no ranker is called 'ebrnk'; did you mean ebrank?"),
    (f"simulate {TINY}", "Missing option '--ranker'"),
    ("simulate --ranker bm25 --dataset nowhere", "nowhere: no such dataset or folder"),
    (f"{BM25} --sessions 3", "3 sessions are too few"),
    (f"{BM25} --eta 0", "Invalid value for '--eta'"),
    (f"{BM25} --jobs 0", "Invalid value for '--jobs'"),
    (f"{BM25} --seed {2**63}", "is not in the range 0<=x<="),
    (f"{BM25} --seed -1", "Invalid value for '--seed'"),
    (f"{BM25} --initial 5", "--initial: '5' is not a range such as 5-10"),
    (f"{BM25} --measure-at 5,x", "--measure-at: '5,x' is not a list of numbers"),
    (f"{BM25} --users quiet_users:Quiet --noise 0.2", "have no parameter noise; leave out --noise"),
    (f"{BM25} --out text", "'--out'"),
    (f"{BM25} --per-query a.txt", "must end with .csv"),
    (f"{BM25} --per-query text/a.csv", "error: text"),
    (f"{BM25} --trec text/trec", "error: text"),
    (f"{BM25} --cluster local:2 --jobs 2", "--jobs applies to this machine only"),
    (f"{BM25} --cluster ftp://node:1", "is not the address of a cluster. Use dask://HOST:PORT"),
    (f"{BM25} --config misspelt.toml", "list-lenght is not an option; did you mean list-length?"),
    (f"{BM25} --config empty.toml", "--list-length"),
    (f"{BM25} --config text", "not valid TOML"),
    (f"{BM25} --config nowhere.toml", "nowhere.toml: cannot be read"),
    (f"{BM25} --users cascad", "no users are called 'cascad'; did you mean cascade?"),
    ("compare bm25 ebrank", "to run bm25, ebrank, set --dataset; only folders bring their own"),
    (f"compare bm25 {TINY}", "a comparison needs at least two rankers"),
    (f"compare bm25 bm25 {TINY}", "a comparison needs at least two rankers"),
    (f"compare nowhere bm25 {TINY}", "folder not found: nowhere; and no ranker is called"),
    (
        f"compare mine bm25 {TINY}",
        "error: mine: no trials in this folder. Give a folder that",
    ),
    (f"tune {TINY} --ranker bm25", "bm25 has nothing to tune"),
    (f"{TUNE} --grid 1", "one --grid per --param"),
    (f"{TUNE} --fold all", "parameters are chosen in one fold at a time; choose one"),
    (f"{TUNE} --sessions 2 --updates 1 --json", "set more sessions"),
    ("reproduce --only tabel2", "no exhibit is called 'tabel2'; did you mean table2?"),
    ("reproduce --given bm25", "bm25 is not a tuned ranker with its value"),
    ("reproduce --tune bm25", "bm25 has nothing to tune"),
    ("reproduce --scale 0", "Invalid value for '--scale'"),
    ("reproduce --cluster local:2 --jobs 2", "--jobs applies to this machine only"),
    ("rankers dbg", "no ranker is called 'dbg'; did you mean dbgd?"),
    ("data check mine --drop-features 3-1", "is neither a list of feature numbers such as"),
    ("data check mine --baseline-feature 1.5", "is not N|none: a whole number"),
    ("data check mine --max-label none", "max_label must be a"),
    ("data check mine --fold 0", "fold must be a whole number of 1 or more"),
    ("data check mine --fold x", "is not N|all: a whole number"),
    ("data check mine --fold all", "files are checked one fold at a time; choose one with --fold"),
    ("data check absent", "error: absent: no such dataset or folder. "),
    ("data check ''", "error: '' is not a path\n"),
    ("aggregate log.csv --out e.parquet", "no column '"),
    (f"{LOG} --memory much", "'much' is not a size"),
    ("import log.csv new --features items.csv", "log.csv: not a whole Parquet file"),
    ("import store new", "store: not a whole Parquet file"),
    ("examine store --features items.csv", "works only with evidence"),
    ("examine nothing", "nothing: no store"),
    ("features store show price", "show takes no names"),
    ("features store add", "add takes at least one name"),
    ("features store rename price", "rename takes an old name and a new one"),
    ("features store remove price --shared", "--shared works only with add"),
    ("features store drop price", "'drop' is not one of"),
    ("features store remove prize", "error: there is no feature 'prize', only price\n"),
    ("features store remove price ''", "error: remove[1]: Expected `str` of length "),
    ("items list store --limit 0", "error: limit: "),
    ("delete store", "Give one of --item, --query, --user, --vacuum and --list."),
    ("delete http://127.0.0.1:1 --vacuum", "--vacuum needs the store itself, not a server"),
    ("delete store --item ''", "error: name: Expected `str` of length "),
    ("delete typo --user ada", "typo: no store, for there is no log.db. Name the folder that was"),
    ("replay nothing", "error: nothing: no store, for there is no log.db. "),
    ("replay text", "error: text: not a database, or damaged "),
    ("export store text", "error: text: a file, not a folder. "),
    ("export nothing out", "error: nothing: no store"),
    ("backup store text", "error: text: exists already. "),
    ("backup store text/such/file", "error: text/such: cannot be made: Not a directory."),
    ("backup nothing file", "error: nothing: no store"),
    ("store migrate mine", "no store, for there is no log.db"),
    ("serve --port 70000", "server.port"),
    ("serve --host 0.0.0.0", "no tokens"),
    ("serve --new-token 'a b'", "is not a valid token name"),
    ("serve --new-token a --scopes root", "unknown scope 'root'"),
    ("serve --store /proc/nowhere", "/proc/nowhere"),
    ("serve --scopes rank", "--scopes works only with --new-token"),
    ("serve --demo --store new", "--demo uses a temporary store"),
    ("serve --config nowhere.toml", "nowhere.toml"),
    ("serve --config settings.toml", "Did you mean window?"),
]
QUIET_USERS = """
from dataclasses import dataclass
from ebrank.lab.simulation.users import PBM, Users

@dataclass(frozen=True)
class Quiet(Users):
    name, help = "quiet", "As pbm, and nothing to set."
    browse = PBM().browse
"""
FILES = {
    "text": "not a database, whatever it is called\n" * 40,
    "misspelt.toml": "list-lenght = 3\n",
    "settings.toml": "[ranking]\nwindw = 1\n",
    "empty.toml": "list-length = 0\n",
    "quiet_users.py": QUIET_USERS,
    "log.csv": "ranking,search,item,type,rank\n1,tea,assam,impression,1\n",
    "items.csv": "item,x\nassam,1\n",
}


@pytest.mark.parametrize(("line", "problem"), MISTAKES)
def test_a_mistake_is_named(line: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in FILES.items():
        Path(name).write_text(content)
    write_fold(Path("mine"))
    if " store" in line:
        good("store", "init", "store")
        good("features", "store", "add", "price")
    monkeypatch.syspath_prepend(".")
    before = set(Path().iterdir())
    said = refused(*shlex.split(line))
    assert problem in said or problem in " ".join(said.split())
    assert said.count("error: ") + said.count("Error: ") == 1
    assert set(Path().iterdir()) - {Path("__pycache__")} == before, "something was made"
