"""What is deleted or retracted on one server is gone from what queries share on all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.policy import model_file
from ebrank.policy.scaling import Scaling
from ebrank.priors.item_effects import VARIANCE
from ebrank.service import engine as engines
from ebrank.service.learning import training
from ebrank.service.learning.fitting import TrainingJob, TrainingResult
from ebrank.service.store import open
from ebrank.service.store.records import ModelRecord
from tests.postgres import Postgres
from tests.service.scenes import linear_state
from tests.service.test_fleet import click, sent
from tests.threaded import Threaded, trained_here

POLICY = "auto:bonus=none"
CONFIG = f'[ranking]\npolicy = "{POLICY}"\n[training]\nafter_events = 0\nevery_seconds = 0\n'
ITEMS = [{"id": f"i{place}", "features": [place / 10]} for place in range(6)]
PATIENCE = 30.0
TICKS = 0.5  # seconds in which every server sweeps, and looks whether to train, some times

pytestmark = pytest.mark.slow


async def with_effects(url: str) -> None:
    """Give a store a version of the prior whose items have effects of their own."""
    ranker = EBRanker(POLICY, scaling=Scaling("query"))
    ranker.state_ = {**linear_state(0.1), VARIANCE: np.array([0.8])}
    async with open(url, "serve") as store:
        record = ModelRecord(1, 0.0, 1, None, None, activated=True, features=("p0",))
        await store.models.add(record, model_file.to_bytes(ranker))
        await store.flush()


def listed(server: Threaded, query: str) -> Any:  # noqa: ANN401 (JSON)
    return sent(server, "POST", "/v1/rank", {"query": query, "explain": True})


def heard(server: Threaded, query: str) -> dict[str, tuple[float, int]]:
    """Return what each item of a query earned elsewhere, and in how many queries."""
    items = listed(server, query)["items"]
    return {item["id"]: (item["elsewhere"], item["other_queries"]) for item in items}


def soon(holds: Callable[[], bool]) -> bool:
    """Return whether something holds before long."""
    deadline = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.1)
    return holds()


@pytest.mark.parametrize("what", ["item", "retraction"])
@pytest.mark.parametrize("where", ["postgresql", "sqlite"])
def test_nothing_is_left_in_the_priors_of_other_queries_on_any_server(
    where: str,
    what: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, servers, runs = str(tmp_path / "store"), list[Threaded](), list[str]()
    if where == "postgresql":
        database: Postgres = request.getfixturevalue("database")
        url = database.url(f"forgetting_{what}")

    async def fitted(url: str, job: TrainingJob, seconds: float) -> TrainingResult:
        runs.append(url)
        return await trained_here(url, job, seconds)

    monkeypatch.setattr(training, "in_process", fitted)
    for name in ("TICK_SECONDS", "BEAT_SECONDS"):
        monkeypatch.setattr(engines, name, 0.05)
    asyncio.run(with_effects(url))
    with ExitStack() as stack:
        for number in range(2 if where == "postgresql" else 1):
            (tmp_path / str(number)).mkdir()
            server = Threaded(tmp_path / str(number), CONFIG, store=url)
            servers.append(stack.enter_context(server))
        one, other = servers[0], servers[-1]
        for query in ("tea", "green"):
            sent(one, "PUT", f"/v1/queries/{query}/items", {"items": ITEMS})
        for turn in range(8):
            server = servers[turn % len(servers)]
            click(server, f"e{turn}", listed(server, "tea")["ranking_id"], "i3")
        assert soon(lambda: all(heard(server, "green")["i3"][0] > 0.0 for server in servers))
        assert not runs
        if what == "item":
            sent(one, "POST", "/v1/deletions", {"kind": "item", "name": "i3"})
            sent(one, "PUT", "/v1/queries/green/items", {"items": [ITEMS[3]]})
        else:
            sent(one, "POST", "/v1/retractions", {"query": "tea", "apply": True})

        def gone() -> bool:
            """Return whether no server has anything left of it; what was not deleted stays."""
            each = [heard(server, "green") for server in servers]
            left = {"i3"} if what == "item" else {f"i{place}" for place in range(6)}
            kept = what == "item"
            return all(
                {own[name] for name in left} == {(0.0, 0)} and (own["i0"][1] == 1) == kept
                for own in each
            )

        assert soon(gone)
        assert soon(lambda: len(runs) == 1)
        assert soon(lambda: not sent(other, "GET", "/v1/models")["training"]["running"])
        time.sleep(TICKS)
        for server in servers:
            server.stop()
        for server in servers:
            server.start()
        assert soon(gone)
        time.sleep(TICKS)
        assert len(runs) == 1
        assert gone()
