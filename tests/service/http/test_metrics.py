"""Metrics: the names that dashboards and alerts are built on, in a page that Prometheus reads."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import ebrank
from ebrank.service import engine as engines
from ebrank.service.learning import training
from ebrank.service.learning.fitting import TrainerError, TrainingResult
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem
from tests.in_process import Local, in_process
from tests.service.scenes import Scene, better, played
from tests.service.store.blocking import run
from tests.threaded import Threaded

PATIENCE = 60.0  # seconds: the machine may be busy
ITEMS = {"items": [{"id": name, "features": [place, 1.0]} for place, name in enumerate("abcde")]}
Series = dict[tuple[str, ...], float]


def scraped(url: str) -> Series:
    """Return the samples of a server's page, by name and labels."""
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics").text)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def scraped_until(url: str, right: Callable[[Series], bool]) -> Series:
    deadline = time.monotonic() + PATIENCE
    while not right(found := scraped(url)):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def test_what_happened_is_counted_by_each_server_for_itself() -> None:
    """Nothing is registered globally: a program may make several servers."""
    with in_process() as local, in_process() as other:
        local.json("PUT", "/v1/queries/tea/items", ITEMS)
        served = local.json("POST", "/v1/rank", {"query": "tea", "k": 4})
        event = {"event_id": "1", "type": "click", "ranking_id": served["ranking_id"]}
        event |= {"item": served["items"][0]["id"]}
        local.json("POST", "/v1/feedback", {"events": [event]})
        page, others = (each.request("GET", "/metrics") for each in (local, other))
    for line in (
        "ebrank_rankings_total 1.0",
        "ebrank_slots_total 4.0",
        'ebrank_events_total{status="accepted"} 1.0',
        'ebrank_events_total{status="rejected"} 0.0',
        'ebrank_http_requests_total{method="POST",route="/v1/rank",status="200"} 1.0',
        'ebrank_http_request_seconds_count{route="/v1/feedback"} 1.0',
        "ebrank_model_version 0.0",
        "ebrank_flush_waiting 0.0",
        "ebrank_flush_seconds_count 2.0",  # the items, and the click
        'ebrank_lookups_total{found="memory"} 1.0',  # by the click
        'ebrank_lookups_total{found="store"} 2.0',  # again once there is a schema
        "ebrank_stale_total 0.0",
    ):
        assert line + "\n" in page.text
    assert "ebrank_rankings_total 0.0\n" in others.text
    assert page.headers["content-type"].startswith("text/plain; version=")
    families = {one.name: one.type for one in text_string_to_metric_families(page.text)}
    assert families["ebrank_http_requests"] == "counter"
    assert families["ebrank_flush_seconds"] == "histogram"
    assert families["ebrank_prior_state"] == "gauge"
    assert {"process_resident_memory_bytes", "process_cpu_seconds"} <= families.keys()


def test_a_clock_that_is_behind_the_log_is_told() -> None:
    def lag(local: Local) -> float:
        page = local.request("GET", "/metrics").text
        return float(page.partition("\nebrank_clock_lag_seconds ")[2].partition("\n")[0])

    with in_process() as local:
        assert lag(local) == 0.0
    store = MemoryStore()
    run(store.items.put("q", [NewItem("a", (1.0,))], time.time() + 100.0))  # the clock was set back
    with in_process(store=store) as local:
        assert 90.0 < lag(local) <= 100.0


def test_a_server_tells_the_state_of_its_store_and_prior(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fitted(*_: object) -> TrainingResult:
        return better()

    async def broken(*_: object) -> TrainingResult:
        raise TrainerError("no memory")

    monkeypatch.setattr(training, "in_process", fitted)
    monkeypatch.setattr(engines, "LOOK_SECONDS", 0.05)
    began = time.time()
    config = "[training]\nafter_events = 0\n[ranking]\npolicy = 'ebrank'\n"
    with (
        Threaded(tmp_path, config) as server,
        ebrank.Client(server.url) as client,
    ):
        first = scraped(server.url)
        assert first["ebrank_prior_state", "untrained"] == 1.0
        assert first["ebrank_log_entries",] == 0.0
        assert not any(name == "ebrank_training_ended_timestamp_seconds" for name, *_ in first)
        client.put_items("q", {f"i{at}": [float(at)] for at in range(4)})
        for _ in range(9):
            client.click(client.rank("q"), "i3")
        client.train()
        ended = ("ebrank_training_ended_timestamp_seconds", "succeeded")
        told = scraped_until(server.url, lambda found: ended in found)
        assert began < told[ended] < time.time()
        then = scraped_until(
            server.url,
            lambda found: (
                found["ebrank_prior_state", "live"] == 1.0 and found["ebrank_log_entries",] >= 18.0
            ),
        )
        states = {labels[0]: value for (name, *labels), value in then.items() if "prior" in name}
        assert states == {one: float(one == "live") for one in states}
        assert set(states) == {"live", "untrained", "refused", "unused", "failing"}
        assert then["ebrank_store_bytes",] > first["ebrank_store_bytes",] > 0.0
        free = shutil.disk_usage(tmp_path).free
        assert then["ebrank_store_free_bytes",] == pytest.approx(free, rel=0.05)
        assert 0.0 < then["ebrank_roll_up_lag_seconds",] < time.time() - began
        failed = ("ebrank_training_ended_timestamp_seconds", "failed")
        assert failed not in then
        monkeypatch.setattr(training, "in_process", broken)
        client.train()
        told = scraped_until(server.url, lambda found: failed in found)
        assert told[ended] < told[failed] < time.time()
        scraped_until(server.url, lambda found: found["ebrank_prior_state", "failing"] == 1.0)


@played()
async def test_the_roll_up_is_late_until_one_succeeds(engine: Scene) -> None:
    log = engine.store.log
    roll_up = log.roll_up

    async def fails(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    engine.clock.now += 700.0
    log.roll_up = fails
    with pytest.raises(StoreError):
        await engine._roll_up()
    assert engine.roll_up_lag == 700.0
    log.roll_up = roll_up
    await engine._roll_up()
    assert engine.roll_up_lag == 0.0
