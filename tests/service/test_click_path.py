"""Lists and clicks take a short way from the socket to the disk; docs/architecture.md walks it."""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ebrank
from ebrank.service.core.background import Housekeeping
from ebrank.service.store.sqlite import SqliteStore, database
from tests.in_process import Local, in_process
from tests.service.scenes import settings
from tests.service.store.blocking import run

PACKAGE = Path(ebrank.__file__).parent
MOST_FILES = {"click": 17, "list": 20}
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep chores and checkpoints from running while a request is traced."""
    monkeypatch.setattr(Housekeeping, "add", lambda *_: None)
    monkeypatch.setattr(database, "INTERVAL_SECONDS", 3600.0)


class Trace:
    """Notes the package's files that run while `on`, in the order in which they are entered."""

    def __init__(self) -> None:
        self.on = False
        self.files: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 (unused)
        if self.on and event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                self.files.setdefault(path.relative_to(PACKAGE).as_posix())


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Trace this thread and those that begin within, such as the one that flushes.

    The garbage of other tests is no part of it: to end a forgotten generator is to enter its file.
    """
    before = sys.getprofile(), threading.getprofile()
    gc.collect()
    gc.disable()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])
        gc.enable()


def files_run(folder: Path, request: Callable[[Local, str], object]) -> list[str]:
    """Return the files that run for a request, given the client and the id of a list."""
    trace = Trace()
    with tracing(trace):
        store = SqliteStore(folder)
        with in_process(settings(ranking={"window": 0.0}), store=store) as local:
            items = [{"id": name, "features": [1.0]} for name in "abc"]
            local.json("PUT", "/v1/queries/tea/items", {"items": items})
            served = local.json("POST", "/v1/rank", {"query": "tea"})
            click(local, served["ranking_id"], "a")
            rank(local)
            trace.on = True
            request(local, served["ranking_id"])
            trace.on = False
        run(store.close())
    return list(trace.files)


def click(local: Local, ranking_id: str, item: str) -> None:
    event = {"event_id": item, "ranking_id": ranking_id, "item": item, "type": "click"}
    assert local.json("POST", "/v1/feedback", {"events": [event]})["accepted"] == 1


def rank(local: Local) -> None:
    assert local.json("POST", "/v1/rank", {"query": "tea"})["items"]


def walked(heading: str) -> list[str]:
    """Return the files in the first column of a section's table in the architecture."""
    section = ARCHITECTURE.read_text(encoding="utf-8").split(f"### {heading}\n")[1].split("\n#")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = [name for cell in cells for name in re.findall(r"`([^`]+\.py)`", cell)]
    return [name if (PACKAGE / name).exists() else f"service/{name}" for name in named]


REQUESTS: dict[str, Callable[[Local, str], object]] = {
    "click": lambda local, ranking_id: click(local, ranking_id, "b"),
    "list": lambda local, _: rank(local),
}


@pytest.mark.parametrize("kind", list(REQUESTS))
def test_a_request_passes_few_files(tmp_path: Path, kind: str) -> None:
    files = files_run(tmp_path, REQUESTS[kind])
    assert {"service/http/app.py", "service/store/sqlite/database.py"} <= set(files)
    assert len(files) <= MOST_FILES[kind], "\n".join([f"a {kind} passes too many files:", *files])
    assert walked(f"A {kind}, file by file") == files
