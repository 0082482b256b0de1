"""Two servers on one database, over HTTP: each knows what came through the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ebrank.service.ops.replay import replay
from ebrank.service.store import open
from tests.postgres import Postgres, postgres
from tests.service import fleet
from tests.service.running import Running
from tests.threaded import Threaded

READING = 0.05  # seconds that a client takes between two lists

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pair(
    database: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Running, Threaded]]:
    """Two servers; the first is in a process that may be killed."""
    url = database.url("pair")
    folders = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    with Running(folders[0], store=url) as one, Threaded(folders[1], store=url) as two:
        yield one, two


def sent(server: fleet.Server, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 (JSON)
    answer = httpx.request(method, server.url + path, json=body, timeout=30.0, verify=False)
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(server: fleet.Server, query: str, names: str) -> None:
    items = [{"id": name, "features": {"price": float(ord(name)), "age": 0.0}} for name in names]
    sent(server, "PUT", f"/v1/queries/{query}/items", {"items": items})


def listed(server: fleet.Server, query: str = "q") -> tuple[str, list[str]]:
    answer = sent(server, "POST", "/v1/rank", {"query": query})
    return answer["ranking_id"], [item["id"] for item in answer["items"]]


def click(server: fleet.Server, name: str, ranking: str, item: str) -> Any:  # noqa: ANN401 (JSON)
    event = {"event_id": name, "ranking_id": ranking, "item": item, "type": "click"}
    return sent(server, "POST", "/v1/feedback", {"events": [event]})["results"][0]["status"]


def counted(server: fleet.Server, query: str = "q") -> dict[str, tuple[int, int]]:
    items = sent(server, "GET", f"/v1/queries/{query}")["items"]
    return {item["id"]: (item["shown"], item["clicks"]) for item in items}


async def replayed(url: str) -> str:
    async with open(url, "read") as store:
        return str(await replay(store))


def test_the_first_items_decide_on_the_features_of_all_servers(
    pair: tuple[Running, Threaded],
) -> None:
    one, two = pair
    named = {"items": [{"id": "a", "features": {"price": 1.0, "age": 2.0}}]}
    sent(one, "PUT", "/v1/queries/o/items", named)
    wrong = {"items": [{"id": "b", "features": {"color": 1.0}}]}
    answer = httpx.put(two.url + "/v1/queries/p/items", json=wrong, timeout=30.0, verify=False)
    assert answer.status_code == 422, answer.text
    assert "color" in answer.text
    right = {"items": [{"id": "b", "features": {"age": 2.0, "price": 3.0}}]}
    sent(two, "PUT", "/v1/queries/p/items", right)
    assert listed(one, "p")[1] == ["b"]


def test_clicks_through_either_server_count_once(
    pair: tuple[Running, Threaded], database: Postgres
) -> None:
    one, two = pair
    put(one, "q", "abc")
    first, order = listed(two)
    assert sorted(order) == ["a", "b", "c"]
    assert click(one, "e1", first, order[2]) == "accepted"  # a list that the other server made
    assert click(two, "e1", first, order[2]) == "duplicate"
    assert click(two, "e2", first, order[2]) == "duplicate"
    second, _ = listed(one)
    listed(two)  # whose write tells it that it was behind
    for server in pair:
        listed(server)
    listed(one)
    expected = {name: (6, int(name == order[2])) for name in "abc"}
    assert counted(one) == expected
    put(two, "q", "d")
    listed(one)
    assert "d" in listed(one)[1]  # at the latest
    one.kill()
    assert click(two, "e3", second, order[0]) == "accepted"
    one.start()
    assert counted(one)[order[0]][1] == 1
    report = asyncio.run(replayed(database.url("pair")))
    assert report.startswith("equal: "), report
    assert " 2 events " in report


def test_three_servers_and_the_database_are_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    with postgres() as own:
        servers = fleet.fleet(tmp_path, own.url(), 3)
        try:
            fleet.put_items(servers[0])
            outcome = fleet.survive(own, servers, kills=5, reading=READING)
        finally:
            for server in servers:
                server.stop()
        counted = asyncio.run(fleet.check(own.url(), outcome))
    assert outcome.kills == (4, 1)
    assert counted >= len(outcome.acknowledged) > 20


def test_a_rolling_restart_fails_no_request(database: Postgres, tmp_path: Path) -> None:
    url = database.url("rolling")
    patient = f"{fleet.QUIET}[server]\nleave_seconds = 1.0\n"
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
    with (
        Running(folders[0], patient, store=url) as one,
        Threaded(folders[1], patient, store=url) as two,
    ):
        fleet.put_items(one)
        balancer, outcome = asyncio.run(fleet.restart_in_turn([one, two], READING))
        names = {server["name"] for server in sent(one, "GET", "/v1/insights")["servers"]}
        assert len(names) == 2  # those that left said so
    assert balancer.failed == []
    counted = asyncio.run(fleet.check(url, outcome))
    assert balancer.answered == 2 * outcome.lists
    assert counted == len(outcome.acknowledged) == outcome.lists > 20
