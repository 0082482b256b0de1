"""The walk-through of docs/http.md, line by line against a real server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ebrank
from tests.threaded import Threaded

PAGE = (Path(__file__).parents[1] / "docs" / "http.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(sh|json|python)\n(.*?)```", re.DOTALL)
ANYTHING = "…"


def run(script: str) -> str:
    """Run a piece of shell; it must succeed, and every answer must be a good one."""
    assert shutil.which("curl"), "the walk-through needs curl"
    done = subprocess.run(
        ["sh", "-e", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout


def agrees(told: Any, found: Any) -> bool:  # noqa: ANN401 (JSON)
    """Return whether an answer is as the page says; an ellipsis stands for anything."""
    if isinstance(told, dict):
        return set(told) == set(found) and all(agrees(told[key], found[key]) for key in told)
    if isinstance(told, list):
        return len(told) == len(found) and all(map(agrees, told, found))
    return bool(told in (ANYTHING, found))


@pytest.mark.slow
def test_the_walk_through_works_as_written(tmp_path: Path) -> None:
    with Threaded(tmp_path) as server:
        answer: Any = None
        names = {"RANKING": "", "ITEM": ""}
        for kind, text in BLOCK.findall(PAGE):
            local = text.replace("http://127.0.0.1:8000", server.url)
            if kind == "json":
                assert agrees(json.loads(text), answer), f"{text}\n{answer}"
            elif kind == "python":
                exec(compile(local, "docs/http.md", "exec"), {"ebrank": ebrank})
            else:
                for name, value in names.items():
                    local = local.replace(name, value)
                output = run(local)
                if local.count("curl") == 1:
                    answer = json.loads(output)
                    if "ranking_id" in answer:
                        names["RANKING"] = answer["ranking_id"]
                        names["ITEM"] = answer["items"][0]["id"]
                else:
                    assert output
                    assert '"error"' not in output


def test_every_status_in_the_table_exists_and_the_other_way_round() -> None:
    from ebrank.service.core.problems import NotFound, Problem
    from ebrank.service.http.problems import CODES

    table = re.findall(r"^\| (\d{3}) \| (.*?) \|", PAGE, re.MULTILINE)
    told = {(int(status), code) for status, codes in table for code in re.findall("`(.*?)`", codes)}
    exist = {*CODES.items(), *((kind.status, kind.code) for kind in (Problem, NotFound))}
    assert told == exist - {(500, "internal")}
