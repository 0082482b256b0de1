"""Both clients against a real server: every method, tokens, errors, and a server that goes away."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import ebrank
from ebrank.client import Retries, ServiceError
from ebrank.client.calls import Features, event
from ebrank.service.api import StartExperimentRequest
from ebrank.service.http.admission import new_token
from tests.threaded import Threaded

SECRET, TOKEN = new_token("all", ["rank", "feedback", "admin"])
CONFIG = f'[tokens.all]\nsha256 = "{TOKEN.sha256}"\nscopes = ["rank", "feedback", "admin"]\n'
ITEMS: dict[str, Features] = {
    "sencha": [0.4, 4.6],
    "assam": [0.2, 4.1],
    "a/b ü": np.array([0.9, 4.8]),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Threaded]:
    with Threaded(tmp_path_factory.mktemp("client"), CONFIG) as started:
        yield started


def test_every_method_waits_for_its_answer(server: Threaded) -> None:
    with ebrank.Client(server.url, token=SECRET) as client:
        before = client.insights().totals.clicks  # by other tests
        assert client.put_items("tea/green", ITEMS).added == 3
        served = client.rank("tea/green", k=2, user="ann", explain=True)
        assert [item.rank for item in served.items] == [1, 2]
        assert isinstance(served.items[0].prior, float)
        assert client.click(served, served.items[0].id, event_id="e").accepted == 1
        assert client.click(served.ranking_id, served.items[0].id, event_id="e").duplicate == 1
        seen = client.impression(served, [item.id for item in served.items])
        assert seen.accepted == 2
        assert client.withdraw("tea/green", "a/b ü").withdrawn
        state = client.query("tea/green")
        assert {item.id: item.clicks for item in state.items}[served.items[0].id] == 1
        assert [item.id for item in state.withdrawn] == ["a/b ü"]
        assert {item.id for item in client.rank("tea/green").items} == {"sencha", "assam"}
        assert [item.id for item in client.rank("tea/green", items=["assam"]).items] == ["assam"]
        brought = client.rank("tea/green", items={"new": [0.1, 1.0], "assam": [0.2, 4.1]})
        assert {item.id for item in brought.items} == {"assam", "new"}
        assert client.train().training is not None
        assert client.activate(0).active == client.models().active == 0
        assert client.insights().totals.clicks == before + 1
        found = client.queries(prefix="te", contains="ea", limit=5)
        assert ([one.query for one in found.queries], found.next) == (["tea/green"], None)
        proof = client.delete("user", "ann")
        assert (proof.kind, client.deletions().deletions) == ("user", [proof])


async def test_methods_are_coroutines_that_may_run_at_once(server: Threaded) -> None:
    async with ebrank.AsyncClient(server.url, token=SECRET) as client:
        assert (await client.put_items("coffee", ITEMS)).added == 3
        lists = await asyncio.gather(*(client.rank("coffee", k=1) for _ in range(5)))
        assert len({served.ranking_id for served in lists}) == 5
        events = [event(served, served.items[0].id, "click") for served in lists]
        assert (await client.feedback(events)).accepted == 5
        assert (await client.feedback(events)).duplicate == 5
        assert (await client.click(lists[0], "nobody")).rejected == 1


def test_errors_say_what_the_server_says(server: Threaded) -> None:
    with ebrank.Client(server.url, token=SECRET) as client:
        with pytest.raises(ServiceError, match="nobody asked") as unknown:
            client.query("nobody asked")
        assert (unknown.value.status, unknown.value.code) == (404, "not_found")
        with pytest.raises(ServiceError, match=r"^k: ") as invalid:
            client.rank("tea", k=0)
        assert (invalid.value.status, invalid.value.field) == (422, "k")
        assert isinstance(invalid.value, ebrank.EBRankError)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens, nor will before the test ends."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def test_a_server_that_is_not_there_is_told_after_some_tries(nobody: str) -> None:
    began = time.monotonic()
    with (
        ebrank.Client(nobody, retries=Retries(attempts=3, first=0.1)) as client,
        pytest.raises(ServiceError, match="does not answer") as told,
    ):
        client.models()
    assert (told.value.status, told.value.code) == (None, "unreachable")
    assert time.monotonic() - began >= 0.15  # it waited twice


class Unsteady:
    """A server that cuts connections, or answers something, before it serves a good answer."""

    def __init__(self, bad: list[bytes], good: bytes) -> None:
        self._answers = [*bad, good]
        self.requests: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        for answer in self._answers:
            connection, _ = self._socket.accept()
            with connection:
                connection.settimeout(5)
                received = b""
                while b"\r\n\r\n" not in received:
                    received += connection.recv(65536)
                head, _, body = received.partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                while len(body) < length:
                    body += connection.recv(65536)
                self.requests.append(body)
                connection.sendall(answer)
        self._socket.close()


def reply(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (
        status,
        len(body),
    ) + (body)


ACCEPTED = b'{"accepted":1,"duplicate":0,"rejected":0,"results":[{"index":0,"status":"accepted"}]}'
BUSY = reply(503, b'{"error":{"code":"unavailable","message":"busy"}}')


def test_feedback_is_sent_again_with_the_same_ids() -> None:
    server = Unsteady([b"", BUSY, b"HTTP/1.1 200 OK\r\n"], reply(200, ACCEPTED))
    with ebrank.Client(server.address, retries=Retries(first=0.01)) as client:
        assert client.click("r1", "a").accepted == 1
    assert len(server.requests) == 4
    assert len(set(server.requests)) == 1


async def test_a_ranking_is_sent_again_if_the_connection_broke() -> None:
    good = reply(200, b'{"ranking_id":"r","model":0,"items":[]}')
    server = Unsteady([b"", BUSY], good)
    async with ebrank.AsyncClient(server.address, retries=Retries(first=0.01)) as client:
        assert (await client.rank("tea")).ranking_id == "r"
    assert len(server.requests) == 3


def test_training_is_not_started_twice() -> None:
    server = Unsteady([b""], reply(200, b"{}"))
    with (
        ebrank.Client(server.address, retries=Retries(first=0.01)) as client,
        pytest.raises(ServiceError, match="does not answer"),
    ):
        client.train()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body", [b"<html>", b'{"error": {"code": "\xff", "message": ""}}', b'"\xff"']
)
def test_something_else_that_answers_is_told_apart(body: bytes) -> None:
    server = Unsteady([reply(404, body)], reply(200, body))
    with ebrank.Client(server.address, retries=Retries(attempts=1)) as client:
        with pytest.raises(ServiceError, match="answered with status 404"):
            client.models()
        with pytest.raises(ServiceError, match="not an answer of this service"):
            client.models()


@pytest.mark.parametrize("absent", ["msgspec", "httpx"])
def test_a_missing_extra_says_how_to_install_it(absent: str) -> None:
    code = f"import sys; sys.modules[{absent!r}] = None\nimport ebrank; ebrank.Client()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr.splitlines()[-1] == (
        f"ebrank.errors.MissingExtraError: {absent} is needed to call a server and not installed; "
        "run: pip install 'ebrank[service]'"
    )


def test_a_fallback_takes_the_place_of_a_list_that_does_not_come(server: Threaded) -> None:
    mine = ["z", "y", "x"]
    with ebrank.Client(server.url, token=SECRET) as client:
        client.put_items("fallback", {"a": [1.0, 2.0]})
        served = client.rank("fallback", fallback=mine)
        assert ([item.id for item in served.items], served.counted) == (["a"], True)
        served = client.rank("nobody asked this", fallback=mine)
        assert ([item.id for item in served.items], served.counted) == (mine, False)
        assert [item.rank for item in served.items] == [1, 2, 3]
        told = client.click(served, "z")
        assert (told.rejected, told.results[0].reason) == (1, "uncounted: the list was not logged")
        assert client.impression(served, mine).rejected == 3
        refused = client.feedback([event(served, "z", "click")])  # the server says the same
        assert (refused.results[0].reason or "").startswith("uncounted: ")
        with pytest.raises(ServiceError) as told_so:  # the caller's mistake, not the server's
            client.rank("fallback", k=0, fallback=mine)
        assert told_so.value.status == 422
    with ebrank.Client(server.url) as stranger, pytest.raises(ServiceError) as told_so:
        stranger.rank("fallback", fallback=mine)
    assert told_so.value.status == 401


async def test_a_fallback_comes_at_once_when_nobody_answers(nobody: str) -> None:
    mine, began = ["z", "y", "x"], time.monotonic()
    patient = Retries(attempts=9, first=1000.0, longest=1000.0)
    with ebrank.Client(nobody, retries=patient) as client:
        second = client.rank("tea", k=2, offset=1, fallback=mine)
    assert [(item.id, item.rank) for item in second.items] == [("y", 2), ("x", 3)]

    async with ebrank.AsyncClient(nobody, retries=patient) as client:
        served = await client.rank("tea", fallback=mine)
        assert [item.id for item in served.items] == mine
        assert (await client.click(served, "z")).rejected == 1
        assert (await client.impression(served, mine)).rejected == 3
    assert time.monotonic() - began < 60.0


PROOF = b'{"kind": "user", "digest": "d", "time": 1.0, "queries": 0, "rankings": 9, "events": 0}'


async def test_a_deletion_is_waited_for_longer_than_a_list() -> None:
    class Slow(Unsteady):
        def _run(self) -> None:
            time.sleep(0.3)
            super()._run()

    with ebrank.Client(Slow([], reply(200, PROOF)).address, timeout=0.1) as blocking:
        assert blocking.delete("user", "ada").rankings == 9
    async with ebrank.AsyncClient(Slow([], reply(200, PROOF)).address, timeout=0.1) as client:
        assert (await client.delete("user", "ada")).rankings == 9


def test_what_lasts_may_still_be_under_way_without_a_response(nobody: str) -> None:
    silent = ebrank.Client(Unsteady([], b"").address)
    with silent as client, pytest.raises(ServiceError, match="under way: see /v1/deletions"):
        client.delete("user", "ada")
    silent = ebrank.Client(Unsteady([], b"").address)
    with silent as client, pytest.raises(ServiceError, match="under way: see /v1/experiments"):
        client.start_experiment(StartExperimentRequest("t", {"a": "auto"}))
    unreachable = ebrank.Client(nobody, retries=Retries(attempts=1))
    with unreachable as client, pytest.raises(ServiceError, match="does not answer") as told:
        client.delete("user", "ada")
    assert "under way" not in str(told.value)


def test_a_fallback_comes_when_the_server_is_too_slow() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        ebrank.Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2) as client,
    ):
        assert not client.rank("tea", fallback=["a"]).counted
