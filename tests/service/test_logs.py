"""Lines of the log: one shape for everything, as JSON; only what is wrong, as text."""

from __future__ import annotations

import io
import json
import logging
import time
from pathlib import Path

import pytest

import ebrank
from ebrank.service import logs
from tests.serving import serving

LOG = logging.getLogger("ebrank.service")


def test_json_lines_have_one_shape() -> None:
    stream = io.StringIO()
    with logs.written("json", stream, requests=True):
        LOG.info("it goes live", extra=logs.about("training", seconds=1.5))
        LOG.warning("the clock is %d s behind", 7)
        try:
            raise ZeroDivisionError("two\nlines")
        except ZeroDivisionError:
            LOG.exception("a chore failed", extra=logs.about("chore"))
        logs.access.info("", extra=logs.about("request", caller="shop"))
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(one["level"], one["event"], one["message"]) for one in told] == [
        ("info", "training", "it goes live"),
        ("warning", "service", "the clock is 7 s behind"),
        ("error", "chore", "a chore failed"),
        ("info", "request", ""),
    ]
    assert told[0]["seconds"] == 1.5
    assert "ZeroDivisionError: two\nlines" in told[2]["traceback"]
    assert all(list(one)[:4] == ["time", "level", "event", "message"] for one in told)


def test_text_is_what_is_wrong_and_nothing_stays_behind() -> None:
    stream = io.StringIO()
    before = logging.getLogger("ebrank").handlers[:]
    with logs.written("text", stream):
        LOG.info("it goes live")
        LOG.warning("the disk is full")
    assert stream.getvalue() == "the disk is full\n"
    assert logging.getLogger("ebrank").handlers == before


@pytest.mark.slow
def test_a_server_writes_training_as_json(tmp_path: Path) -> None:
    config = '[server]\nlog = "json"\naccess_log = true\n[training]\nmin_rows = 1000000\n'
    with serving(tmp_path / "store", config=config) as server:
        with ebrank.Client(server.address) as client:
            client.put_items("tea", {"a": [1.0]})
            client.train()
            while client.models().training.running:
                time.sleep(0.05)
        code, errors = server.stop()
    told = [json.loads(line) for line in errors.splitlines()]
    assert code == 0
    assert {one["event"] for one in told} == {"request", "service", "training"}
    [run] = [one for one in told if one["event"] == "training"]
    assert run["level"] == "info"
    assert run["message"]
    assert run["seconds"] > 0
