"""Servers on one database: killed, they lose nothing; restarted in turn, they fail no request."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.postgres import Postgres, postgres
from tests.service import fleet
from tests.serving import serving
from tests.threaded import Threaded

READING = 0.05  # seconds that a client takes between two lists

pytestmark = pytest.mark.slow


def sent(server: fleet.AnyServer, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 (JSON)
    answer = httpx.request(method, server.url + path, json=body, timeout=30.0, verify=False)
    assert answer.status_code == 200, answer.text
    return answer.json()


def click(server: fleet.AnyServer, name: str, ranking: str, item: str) -> Any:  # noqa: ANN401 (JSON)
    event = {"event_id": name, "ranking_id": ranking, "item": item, "type": "click"}
    return sent(server, "POST", "/v1/feedback", {"events": [event]})["results"][0]["status"]


def test_three_servers_and_the_database_are_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    with postgres() as own:
        servers = fleet.fleet(tmp_path, own.url(), 3)
        try:
            fleet.put_items(servers[0])
            outcome = asyncio.run(fleet.survive(own, servers, kills=5, reading=READING))
        finally:
            assert [server.stop()[0] for server in servers] == [0] * 3
        counted = asyncio.run(fleet.check(own.url(), outcome))
    assert outcome.kills == (4, 1)
    assert counted >= len(outcome.acknowledged) > 20


def test_a_rolling_restart_fails_no_request(database: Postgres, tmp_path: Path) -> None:
    url = database.url("rolling")
    patient = f"{fleet.QUIET}[server]\nleave_seconds = 1.0\n"
    with (
        serving(tmp_path / "one", "--store", url, config=patient) as one,
        Threaded(tmp_path, patient, store=url) as two,
    ):
        fleet.put_items(one)
        balancer, outcome = asyncio.run(fleet.restart_in_turn([one, two], READING))
        names = {server["name"] for server in sent(one, "GET", "/v1/insights")["servers"]}
        assert len(names) == 2  # those that left said so
        assert one.stop()[0] == 0
    assert balancer.failed == []
    counted = asyncio.run(fleet.check(url, outcome))
    assert balancer.answered == 2 * outcome.lists
    assert counted == len(outcome.acknowledged) == outcome.lists > 20
