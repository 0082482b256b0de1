"""Readiness: it tells the truth about the store, at once, and the log gets one clear line."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ebrank.service.core.background import Failures
from ebrank.service.http import readiness
from ebrank.service.http.problems import HttpProblem
from ebrank.service.http.readiness import Readiness
from ebrank.service.settings import RankingSettings, Settings, StoreSettings
from ebrank.service.store.base import StoreError
from ebrank.service.store.records import NewItem
from tests.in_process import Local, in_process
from tests.service.faulty import FaultyStore
from tests.service.scenes import Clock
from tests.service.store.blocking import run

ITEMS = {"items": [{"id": name, "features": [1.0]} for name in "abc"]}
DURABLE = Settings(store=StoreSettings(durability="disk"), ranking=RankingSettings(degraded=False))


def ready(local: Local) -> bool:
    answer = local.request("GET", "/readyz")
    assert answer.status_code in (200, 503)
    return answer.status_code == 200


def rank(local: Local, query: str = "tea") -> int:
    return local.request("POST", "/v1/rank", json={"query": query}).status_code


@pytest.mark.parametrize("tries", [False, True])
@pytest.mark.parametrize("fault", ["full", "damaged", "broken"])
def test_the_first_failure_makes_it_unready_and_success_ready_again(
    fault: str, tries: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FaultyStore()
    run(store.items.put("tea", [NewItem("a", (1.0,))], 1.0))
    with in_process(DURABLE, store) as local:
        assert ready(local)  # the next try is a second away
        setattr(store, fault, True)
        assert rank(local) == 503
        if tries:  # as after a second
            monkeypatch.setattr(readiness, "TRY_SECONDS", 0.0)
        assert not ready(local)
        assert "ebrank_store_failing 1.0\n" in local.request("GET", "/metrics").text
        [line] = [one for one in caplog.records if one.levelno >= logging.ERROR]
        assert line.getMessage().startswith("the store failed: /store/log.db: the d")
        setattr(store, fault, False)
        assert rank(local) == 200
        assert ready(local)
    assert caplog.records[-1].getMessage().startswith("the store works again, after ")


def test_a_write_that_comes_too_late_is_no_failure_of_the_store(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FaultyStore()
    write = store.log.write

    async def overtaken(*given: Any, **named: Any) -> Any:  # noqa: ANN401 (as the store's)
        """Write after another server has deleted the query and added it again."""
        await store.deletions.query("tea", "digest", 1.0)
        await store.items.put("tea", [NewItem("a", (1.0,))], 1.0)
        return await write(*given, **named)

    with in_process(store=store) as local:
        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        store.log.write = overtaken
        status, error = local.error("POST", "/v1/rank", json={"query": "tea"})
        assert (status, error["code"]) == (409, "conflict")
        assert ready(local)
        assert "ebrank_store_failing 0.0\n" in local.request("GET", "/metrics").text
        store.log.write = write
        assert rank(local) == 200
    assert not caplog.records


@pytest.mark.parametrize("fault", ["full", "broken", "stuck"])
def test_without_requests_it_is_found_out_within_two_seconds(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "TRY_SECONDS", 0.0)
    monkeypatch.setattr(readiness, "ANSWER_SECONDS", 0.1)
    store = FaultyStore()
    with in_process(store=store) as local:
        assert ready(local)
        setattr(store, fault, True)
        assert not ready(local)
        setattr(store, fault, False)
        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        assert ready(local)


def test_a_full_disk_may_have_room_for_a_row() -> None:
    """A try writes as much as a long list: a small write may succeed where no list would."""
    written: list[int] = []
    store = FaultyStore()
    keep = store.meta.set

    async def measured(values: dict[str, str], *more: object) -> None:
        written.append(sum(map(len, values.values())))
        await keep(values, *more)  # type: ignore[arg-type]

    with in_process(store=store) as local:
        store.meta.set = measured  # type: ignore[assignment, method-assign]
        assert ready(local)
    assert written[0] > 32_000
    assert written[1] < 32  # nothing of it stays


def test_what_fails_for_good_is_tried_again_without_requests() -> None:
    clock = Clock()
    with in_process() as local:
        checked = Readiness(local.app._engine, timer=clock)
        local.app.readiness.started = checked.started = True
        local.app._engine.failures = Failures(clock)
        local.app._engine.failures.add(StoreError("it is full"))

        def fine() -> bool:
            try:
                local.run(checked.check())
            except HttpProblem:
                return False
            return True

        assert not fine()
        clock.now += 9.0
        assert not fine()
        clock.now += 2.0
        assert fine()


def test_the_log_says_how_many_failures_there_were(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    failures = Failures(clock)
    for _ in range(1000):
        failures.add(StoreError("the disk is full"))
        clock.now += 0.025
    failures.end()
    assert [one.getMessage() for one in caplog.records if "store" in one.getMessage()] == [
        "the store failed: the disk is full",
        "the store works again, after 1000 failures in 25 s",
    ]
