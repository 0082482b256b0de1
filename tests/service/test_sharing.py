"""Queries that list the same items share what they learn about them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import UNSET

from ebrank import EBRanker
from ebrank.model.policy.scaling import Scaling
from ebrank.model.prior.item_effects import VARIANCE
from ebrank.service.api import (
    DeletionRequest,
    ItemIn,
    RankRequest,
    RetractionRequest,
    StartExperimentRequest,
)
from ebrank.service.core.live import LiveQuery
from ebrank.service.learning.fitting import TrainingJob, TrainingResult
from ebrank.service.learning.training import RETRY_SECONDS
from ebrank.service.sharing.messages import QueryMessages
from ebrank.service.sharing.messages import _bytes as bytes_of
from ebrank.service.sharing.sharing import ALL
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import ModelRecord, News
from tests.service.scenes import Scene, add_model, items, linear_state, played, settings
from tests.service.store.blocking import run

ITEMS = items(6)
POLICY = "auto:bonus=none"  # lists change with what is learned, not with what is left to learn
ON = settings(ranking={"policy": POLICY}, training={"after_events": 0, "every_seconds": 0})
QUERIES = ("tea", "green tea", "black tea")
GONE = {"query": "tea", "item": "i3"}


def trained(variance: float = 0.8) -> MemoryStore:
    """Return a store whose model says how much items differ beyond their features."""
    store = MemoryStore()
    run(add_model(store, differing(0.1, 0.1, variance=variance)))
    return store


def differing(*weights: float, variance: float) -> EBRanker:
    """Return a ranker whose items differ by so much beyond their features."""
    ranker = EBRanker(POLICY, scaling=Scaling("query"))
    ranker.state_ = {**linear_state(*weights), VARIANCE: np.array([variance])}
    return ranker


async def filled(engine: Scene, *queries: str) -> None:
    """Put the same items into some queries."""
    for query in queries or QUERIES:
        await engine.put_items(query, ITEMS)


async def liked(engine: Scene, query: str, item: str, times: int = 10) -> None:
    """Let users of a query click one item and no other."""
    for _ in range(times):
        await engine.clicked(await engine.ranked(query), item)


async def explained(engine: Scene, query: str) -> dict[str, Any]:
    """Return why each item of a query has its rank, by name."""
    await engine._share()  # as it does every second
    return {item.id: item for item in (await engine.ranked(query, explain=True)).items}


def sums(engine: Scene, group: int = 0) -> dict[int, list[int]]:
    """Return the sums of messages about each item that a query lists, by the hash of its name."""
    shared = [*engine.resources.sharing.groups.values()][group]
    return dict(zip(shared._hashes.tolist(), shared._sums[shared._places].tolist(), strict=True))


def messages(engine: Scene) -> dict[str, QueryMessages]:
    """Return what each query says."""
    said = engine.resources.sharing.groups[ALL]._messages
    return {query: QueryMessages.unpacked(data) for query, data in said.items()}


def from_scratch(engine: Scene) -> bool:
    """Return whether the sums are those of the messages kept."""
    shared = engine.resources.sharing.groups[ALL]
    whole = np.zeros_like(shared._sums)
    said = messages(engine)
    for own in said.values():
        whole[own.places, :3] += own.counted
        whole[own.places, 3] += 1
    size = sum(bytes_of(len(own.table)) for own in said.values())
    return np.array_equal(whole, shared._sums) and size == shared.size


async def add_version(
    engine: Scene, version: int, weights: tuple[float, float], variance: float
) -> None:
    """Let another version of the prior go live."""
    await add_model(engine.store, differing(*weights, variance=variance), version)
    await engine.activate(version)


async def swept(engine: Scene) -> Scene:
    """Let all queries of an engine speak."""
    await engine._share()
    return engine


@played(ON, on=trained)
async def test_a_click_in_one_query_helps_the_item_in_others(engine: Scene) -> None:
    await filled(engine)
    before = await explained(engine, "green tea")
    await liked(engine, "tea", "i3")
    after = await explained(engine, "green tea")
    assert after["i3"].elsewhere > 0.01
    assert after["i3"].other_queries == 1
    assert after["i3"].prior == pytest.approx(before["i3"].prior)
    shown = next(item for item in (await engine.query("green tea")).items if item.id == "i3")
    assert shown.prior == pytest.approx(after["i3"].prior)
    assert (shown.elsewhere, shown.other_queries) == (after["i3"].elsewhere, 1)
    moved = shown.prior + after["i3"].elsewhere
    assert shown.alpha / (shown.alpha + shown.beta) == pytest.approx(moved)
    assert after["i3"].relevance > before["i3"].relevance
    assert all(after[name].elsewhere < 0 for name in after if name != "i3")
    assert (await engine.ranked("black tea")).items[0].id == "i3", "before its first list"


@played(ON, on=trained)
async def test_a_query_hears_nothing_of_its_own(engine: Scene) -> None:
    await filled(engine)
    await liked(engine, "tea", "i3")
    own = await explained(engine, "tea")
    assert {item.elsewhere for item in own.values()} == {0.0}
    await liked(engine, "green tea", "i1", times=3)
    heard = (await explained(engine, "tea"))["i1"].elsewhere
    await liked(engine, "tea", "i1", times=3)
    assert (await explained(engine, "tea"))["i1"].elsewhere == heard


@played(ON, on=lambda: trained(0.0))
async def test_without_effects_nothing_is_shared(engine: Scene) -> None:
    await filled(engine)
    await liked(engine, "tea", "i3")
    answer = await engine.rank(RankRequest("green tea", explain=True))
    assert all(item.elsewhere is UNSET for item in answer.items)
    assert all(item.other_queries is UNSET for item in (await engine.query("tea")).items)
    assert engine.resources.sharing.groups[ALL].size == 0


@played(ON, on=trained, pair=True)
async def test_a_restart_and_other_servers_come_to_the_same_sums(engine: Scene) -> None:
    """Whatever each has heard in between, to the bit."""
    await filled(engine)
    servers = (engine, engine.other)
    for at in range(24):
        await liked(servers[at % 2], QUERIES[at % 3], f"i{at % 5}", times=1)
    fresh = await swept(await engine.opened())
    for server in servers:
        for query in QUERIES:
            await server.ranked(query, explain=False)
    lists = await engine.opened()
    for query in QUERIES:  # the last lists count, too
        await lists.query(query)
    assert len(sums(fresh)) == len(ITEMS)
    assert sums(await swept(await engine.opened())) == sums(lists)


@played(ON, on=trained, pair=True)
@pytest.mark.parametrize("kind", ["query", "item", "retraction"])
async def test_what_is_deleted_or_retracted_says_nothing_any_more_on_any_server(
    engine: Scene, kind: str
) -> None:
    await filled(engine)
    for server in (engine, engine.other):
        await liked(server, "tea", "i3")
        await liked(server, "black tea", "i2")
        await swept(server)
    assert (await explained(engine.other, "green tea"))["i3"].elsewhere > 0.0
    if kind == "retraction":
        await engine.retract(RetractionRequest(query="tea", apply=True))
    else:
        await engine.delete(msgspec.convert({"kind": kind, "name": GONE[kind]}, DeletionRequest))
    fresh = sums(await swept(await engine.opened()))
    for server in (engine, engine.other):
        assert sums(await swept(server)) == fresh
        assert from_scratch(server)
    if kind == "item":
        for query in QUERIES:
            await engine.put_items(query, [ITEMS[3]])
    for server in (engine, engine.other, await swept(await engine.opened())):
        await server.ranked("green tea")  # the other hears of the new item with its first list
        after = await explained(server, "green tea")
        assert after["i3"].elsewhere <= 0.0
        assert after["i3"].other_queries == int(kind != "item"), "black tea"
        assert after["i2"].elsewhere > 0.0
    assert await engine.replays()


@played(ON, on=trained, pair=True)
async def test_a_deletion_asks_for_training_until_a_run_has_ended_well(engine: Scene) -> None:
    """On the server that trains, whichever has deleted; a crash or a failure asks again."""
    await filled(engine)
    await liked(engine, "tea", "i3")
    runs, problems = list[str](), [RuntimeError("out of memory")]

    async def fit(job: TrainingJob) -> TrainingResult:
        runs.append(job.policy)
        if problems:
            raise problems.pop()
        if len(runs) == 2:  # still under way when its server ends
            await asyncio.sleep(60)
        return TrainingResult(1, False, "too few items")

    async def asked(server: Scene) -> int:
        server._training._run = fit
        await server._train_if_due()
        await asyncio.sleep(0)
        if len(runs) != 2:
            await server._training.finished()
        return len(runs)

    assert [await asked(server) for server in (engine, engine.other)] == [0, 0]
    await engine.delete(DeletionRequest("query", "tea"))
    assert await asked(engine.other) == 1, "it failed"
    assert await asked(engine.other) == 1, "not at once again"
    engine.clock.now += RETRY_SECONDS
    assert await asked(engine.other) == 2
    await engine.other.close()
    restarted = await engine.opened()
    assert await asked(restarted) == 3
    for server in (engine, restarted, await engine.opened()):
        assert await asked(server) == 3
    await engine.delete(DeletionRequest("query", "black tea"))
    assert await asked(engine) == 4


@played(ON, on=trained)
async def test_what_comes_in_after_a_list_is_heard_before_the_next(engine: Scene) -> None:
    """A rare query may never be asked again."""
    await filled(engine)
    await swept(engine)
    await liked(engine, "tea", "i3", times=1)
    assert all(item.elsewhere == 0 for item in (await engine.ranked("tea", explain=True)).items)
    assert (await explained(engine, "green tea"))["i3"].elsewhere > 0.0
    assert from_scratch(engine)


@played(ON, on=trained)
async def test_a_sweep_does_not_undo_what_happens_while_it_reads(engine: Scene) -> None:
    """What it has read may be older than what is in memory by now."""
    await filled(engine)
    await liked(engine, "tea", "i3")
    late = await engine.opened()
    read, queries = late._queries._read, late._queries

    async def slowly(query: str, now: float) -> LiveQuery | None:
        live = await read(query, now)
        if live is not None and query == "tea" and query not in queries._live:
            queries._read = read  # type: ignore[method-assign]
            await late.put_items("tea", [ItemIn("new", [0.5, 0.5])])
            await liked(late, "tea", "new", times=3)
        return live

    queries._read = slowly  # type: ignore[method-assign]
    await swept(late)
    await late.ranked("tea", explain=True)
    await liked(late, "tea", "new", times=2)
    assert from_scratch(late)
    await swept(late)
    assert sums(late) == sums(await swept(await engine.opened()))


@played(ON, on=trained)
async def test_a_sweep_ends_when_another_version_goes_live(engine: Scene) -> None:
    await filled(engine)
    for query in QUERIES:
        await liked(engine, query, "i3", times=2)
    late = await engine.opened()
    look, seen = late._queries.look, list[str]()

    async def changing(query: str, now: float, version: int) -> LiveQuery | None:
        seen.append(query)
        if len(seen) == 2:
            await add_version(late, 2, (2.0, -2.0), 0.4)
        return await look(query, now, version)

    late._queries.look = changing  # type: ignore[method-assign]
    await swept(late)
    assert len(seen) == 2
    await swept(late)
    assert {own.model for own in messages(late).values()} == {2}
    assert sums(late) == sums(await swept(await engine.opened()))


@played(ON, on=trained)
async def test_items_that_are_withdrawn_or_whose_queries_expire_leave_no_trace(
    engine: Scene,
) -> None:
    await filled(engine)
    for query in QUERIES:
        await liked(engine, query, "i3", times=2)
    await engine.put_items("coffee", [ItemIn("bean", [0.1, 0.2])])
    await liked(engine, "coffee", "bean", times=2)
    await engine.withdraw("tea", "i3")
    await engine.ranked("tea")
    assert (await explained(engine, "green tea"))["i3"].other_queries == 1
    async for _ in engine.store.deletions.expire(1e12, 0):
        raise AssertionError
    await engine.store.log.roll_up(1e12)
    async for query in engine.store.deletions.expire(1e12, 100):
        await engine._queries.dropped(query)
    assert sums(await swept(engine)) == {}
    assert engine.resources.sharing.groups[ALL].size == 0


@played(ON, on=trained)
async def test_a_new_version_of_the_prior_changes_what_queries_say(engine: Scene) -> None:
    await filled(engine)
    await liked(engine, "tea", "i3")
    await swept(engine)
    for version, weights in ((2, (2.0, -2.0)), (3, (-1.0, 1.0))):
        await add_version(engine, version, weights, 0.4 if version < 3 else 0.0)
        before = sums(engine)
        await swept(engine)
        assert sums(engine) != before
    assert sums(engine) == {}


@played(ON, on=trained)
async def test_only_as_many_queries_speak_as_there_is_room_for(
    engine: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebrank.service.sharing.messages.MOST_BYTES", 2 * bytes_of(len(ITEMS)))
    await filled(engine)
    for query in QUERIES:
        await liked(engine, query, "i3", times=2)
    assert engine.resources.sharing.groups[ALL].size == 2 * bytes_of(len(ITEMS))
    heard = await explained(engine, QUERIES[2])
    assert heard["i3"].other_queries == 2
    await engine.put_items("coffee", [ItemIn("bean", [0.1, 0.2])])
    await liked(engine, "coffee", "bean", times=1)
    assert len(sums(engine)) == len(ITEMS), "items of a query that says nothing take no memory"
    assert from_scratch(engine)


@played(ON, on=trained)
async def test_a_full_sweep_reads_no_query_that_could_say_nothing(
    engine: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or every deletion would have all of them read, however many there are."""
    monkeypatch.setattr("ebrank.service.sharing.messages.MOST_BYTES", 2 * bytes_of(len(ITEMS)))
    await filled(engine, *(f"q{at}" for at in range(9)))
    look, seen = engine._queries.look, list[str]()

    async def counted(query: str, now: float, version: int) -> LiveQuery | None:
        seen.append(query)
        return await look(query, now, version)

    engine._queries.look = counted  # type: ignore[method-assign]
    await swept(engine)
    assert len(messages(engine)) == 2
    assert len(seen) == 3


@played(ON, on=trained, pair=True)
async def test_what_another_server_counted_changes_the_messages_of_its_items_alone(
    engine: Scene,
) -> None:
    """Told with a write: then a list need not derive those of all candidates again."""
    await filled(engine)
    for server in (engine.other, engine):
        await server.ranked("tea")
        await swept(server)
    live, before = await engine.live("tea"), await engine.stored("tea")
    assert live.changed == set()
    counts = live.counts.copy()
    await engine.clicked(await engine.other.ranked("tea", k=2), "i3")
    after = await engine.stored("tea")
    steps = [
        (*place.tolist(), int(more))
        for place in np.argwhere(after.counts != before.counts)
        for more in [(after.counts - before.counts)[tuple(place)]]
    ]
    assert np.array_equal(live.counts, counts), "it has not heard"
    live.catch_up(after.version, News(before.version, steps, []))
    assert live.changed == {place for place, *_ in steps}
    assert 0 < len(live.changed) < len(ITEMS)
    assert sums(await swept(engine)) == sums(await swept(await engine.opened()))


@played(ON, on=trained)
async def test_a_sweep_reads_page_by_page(engine: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of all queries need not be in memory at once."""
    monkeypatch.setattr("ebrank.service.store.items.PAGE", 2)
    queries = {f"q{at}" for at in range(7)}
    await filled(engine, *queries)
    await engine.delete(DeletionRequest("query", "q3"))
    assert messages(await swept(engine)).keys() == queries - {"q3"}


@played(ON, on=trained)
async def test_items_that_come_and_go_take_no_more_memory(
    engine: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nothing is deleted and no training run drops what is gone."""
    monkeypatch.setattr("ebrank.service.sharing.messages.FIRST_ITEMS", 2 * len(ITEMS))
    shared = engine.resources.sharing.groups[ALL]
    shared.clear()
    await filled(engine, "tea")
    for at in range(40):
        await engine.put_items("tea", [ItemIn(f"new {at}", [0.1, 0.2])])
        await engine.ranked("tea")
        await engine.withdraw("tea", f"new {at}")
    await liked(engine, "tea", "i3", times=1)
    assert len(shared._sums) < 4 * len(ITEMS)
    assert from_scratch(engine)
    await filled(engine, "green tea")
    assert (await explained(engine, "green tea"))["i3"].other_queries == 1


@played(ON, on=trained)
async def test_a_query_without_candidates_says_nothing(engine: Scene) -> None:
    await filled(engine)
    await liked(engine, "tea", "i3")
    for item in ITEMS:
        await engine.withdraw("tea", item.id)
    await engine.delete(DeletionRequest("query", "black tea"))  # which has all queries looked at
    after = await explained(engine, "green tea")
    assert {item.other_queries for item in after.values()} == {0}
    assert sums(await swept(engine)) == sums(await swept(await engine.opened()))


@played(ON, on=trained)
async def test_a_query_that_was_read_again_is_not_moved_on_by_what_it_was(
    engine: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others have their turn, it may be packed, or out of date and read again."""
    await filled(engine)
    await swept(engine)
    for query in QUERIES:
        await liked(engine, query, "i3", times=2)
    turns = list[float]()

    async def meanwhile(seconds: float) -> None:
        turns.append(seconds)
        if len(turns) == 1:
            engine._queries.forget(QUERIES[0])
            await engine.withdraw(QUERIES[0], "i1")
            await engine.ranked(QUERIES[0])

    with monkeypatch.context() as patch:
        patch.setattr("ebrank.service.sharing.messages.asyncio", SimpleNamespace(sleep=meanwhile))
        await swept(engine)
    assert turns
    await swept(engine)
    assert sums(engine) == sums(await swept(await engine.opened()))


@played(ON, on=trained, pair=True)
async def test_every_training_run_has_all_queries_heard_even_if_its_version_is_refused(
    engine: Scene,
) -> None:
    """A server may never be asked for a query that others serve."""
    await filled(engine)
    other = await swept(engine.other)
    await liked(engine, "tea", "i3")
    assert (await explained(other, "green tea"))["i3"].elsewhere == 0.0
    record = ModelRecord(2, 0.0, 1, None, None, activated=False, features=("p0", "p1"))
    await engine.store.models.add(record, b"")
    assert sums(await swept(other)) == sums(await swept(await engine.opened()))
    assert (await explained(other, "green tea"))["i3"].elsewhere > 0.0


@played(ON, on=trained)
async def test_whoever_looks_at_a_query_leaves_the_evidence_of_arms_apart(engine: Scene) -> None:
    """Its arm does not miss what it learned, and nobody outside hears of it."""
    queries = [f"q{at}" for at in range(8)]
    await filled(engine, *queries)
    arms = {"own": "own", "a": POLICY}
    await engine.start_experiment(StartExperimentRequest("t", arms))
    await swept(engine)
    for at in range(24):
        query = queries[at % 8]
        answer = await engine.ranked(query, items=[item.id for item in ITEMS])
        await engine.clicked(answer, f"i{at % 4}")
        await engine.query(query)  # for the dashboard
        await engine.ranked(query)  # of no arm, since it has no order of its own
    fresh = await swept(await engine.opened())
    await swept(engine)
    assert len(engine.resources.sharing.groups) == 3
    for group, listed in enumerate((0, len(ITEMS), len(ITEMS))):
        assert sums(engine, group) == sums(fresh, group)
        assert len(sums(engine, group)) == listed


@played(ON, on=trained)
async def test_arms_per_user_share_the_evidence_of_all_queries(engine: Scene) -> None:
    queries = [f"q{at}" for at in range(6)]
    await filled(engine, *queries)
    arms = {"a": POLICY, "b": "auto"}
    await engine.start_experiment(StartExperimentRequest("t", arms, unit="user"))
    await swept(engine)
    for at in range(24):
        await engine.clicked(await engine.ranked(queries[at % 6], user=f"{at}"), f"i{at % 4}")
    await swept(engine)
    for arm in engine.resources.active.deployment.arms.values():
        live = await engine.live("q0")
        elsewhere = engine.resources.sharing.elsewhere(
            live, arm, engine.resources.active.deployment
        )
        assert elsewhere is not None
        assert elsewhere.queries.tolist() == [5] * len(ITEMS)
    assert sums(engine) == sums(await swept(await engine.opened()))
