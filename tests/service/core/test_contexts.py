"""Contexts of requests: logged as numbers, learned from, and followed by lists."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.policy import model_file
from ebrank.policy.contexts import Contexts, numbers
from ebrank.policy.scaling import Scaling
from ebrank.service.api import ItemIn, RankRequest, RankResponse
from ebrank.service.core.models import Model
from ebrank.service.engine import Engine
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import ModelRecord, RankingEntry
from tests.service.faulty import FaultyStore
from tests.service.scenes import click, ids, items, linear_state, play, ranked, settings
from tests.service.store.blocking import run

PHONE, DESK = {"device": "mobile"}, {"device": "desktop"}
# Lists that nobody confirms change nothing: those of a test can be compared.
OFF: dict[str, Any] = {"ranking": {"policy": "ebrank"}, "events": {"impressions": "confirmed"}}
ON = settings(contexts={"most": 16}, **OFF)
ITEMS = items(8)


S = TypeVar("S", bound=MemoryStore)


def trained(*, contexts: bool = True) -> MemoryStore:
    """Return a store in memory with a model."""
    return with_model(MemoryStore(), contexts=contexts)


def with_model(store: S, *, contexts: bool = True) -> S:
    """Return a store whose model says that phones like the first feature, desks the second."""
    ranker = EBRanker("ebrank", scaling=Scaling("query"))
    ranker.state_ = linear_state(0.4, 0.4)
    if contexts:
        both = sorted(numbers(PHONE) + numbers(DESK))
        sign = 1.0 if both[0] == numbers(PHONE)[0] else -1.0
        weights = sign * np.array([[2.0, -2.0, 0.0], [-2.0, 2.0, 0.0]])
        ranker.contexts_ = Contexts(np.array(both), weights, np.array([0.5, 0.5]))
    record = ModelRecord(1, 0.0, 1, None, None, activated=True, features=("p0", "p1"))
    run(store.models.add(record, model_file.to_bytes(ranker)))
    return store


def lists_of(
    store: MemoryStore, chosen: Settings, *requests: RankRequest, put: bool = True
) -> list[RankResponse]:
    """Return the answers to requests about the same items."""

    async def scene(engine: Engine) -> list[RankResponse]:
        if put:
            await engine.put_items("q", ITEMS)
        return [await engine.rank(request) for request in requests]

    return play(scene, chosen, store=store)


def scores(answer: RankResponse) -> dict[str, float]:
    """Return what each item was sorted by."""
    return {item.id: item.score for item in answer.items}


def logged(store: MemoryStore) -> list[tuple[int, ...]]:
    """Return the contexts of all lists."""
    entries = run(store.log.entries())
    return [entry.contexts for entry in entries if isinstance(entry, RankingEntry)]


def test_a_list_logs_the_numbers_of_its_context() -> None:
    """And nothing else of it; without a context, or where contexts are off, nothing."""
    both = {"segment": "new", **PHONE}
    requests = RankRequest("q", context=both), RankRequest("q"), RankRequest("q", context={})
    store = MemoryStore()
    lists_of(store, ON, *requests)
    assert logged(store) == [numbers(both), (), ()]
    off = MemoryStore()
    lists_of(off, settings(**OFF), *requests)
    assert logged(off) == [(), (), ()]


def test_lists_follow_their_context() -> None:
    """Phones see more of the first feature, desks of the second, and others what all see."""
    phone, desk, plain, unknown, off = (
        lists_of(trained(), chosen, RankRequest("q", context=context))[0]
        for chosen, context in [
            (ON, PHONE),
            (ON, DESK),
            (ON, None),
            (ON, {"device": "watch"}),
            (settings(**OFF), PHONE),
        ]
    )
    first, second = np.array([item.features for item in ITEMS]).T
    names = [item.id for item in ITEMS]
    for answer, sign in ((phone, 1.0), (desk, -1.0)):
        change = [scores(answer)[name] - scores(plain)[name] for name in names]
        assert sign * np.corrcoef(change, first - second)[0, 1] > 0.9
    assert ids(phone) != ids(desk)
    [without] = lists_of(trained(contexts=False), ON, RankRequest("q", context=PHONE))
    for same in (unknown, off, without):
        assert scores(same) == scores(plain), "to the bit"
        assert ids(same) == ids(plain)


def test_a_list_of_some_candidates_is_moved_as_one_of_all() -> None:
    """In whatever order they are given."""
    some: list[str | ItemIn] = ["i5", "i1", "i6"]
    whole, part = lists_of(
        trained(),
        ON,
        RankRequest("q", context=PHONE, explain=True, explore=False),
        RankRequest("q", items=some, context=PHONE, explain=True, explore=False),
    )
    moved = {item.id: item.context for item in whole.items}
    assert {item.id: item.context for item in part.items} == {name: moved[name] for name in some}  # type: ignore[index]
    assert all(item.context for item in whole.items)


def test_cached_effects_of_a_context_follow_the_items() -> None:
    """After a change, lists are those of a server that has just started."""
    store, wanted = trained(), RankRequest("q", context=PHONE)

    async def scene(engine: Engine) -> RankResponse:
        await engine.put_items("q", ITEMS)
        await engine.rank(wanted)
        await engine.put_items("q", [ItemIn("i0", [9.0, -9.0]), ItemIn("new", [4.0, 0.0])])
        return await engine.rank(wanted)

    remembered = play(scene, ON, store=store)
    [fresh] = lists_of(store, ON, wanted, put=False)
    assert scores(remembered) == scores(fresh)


def test_an_explanation_tells_what_the_context_did() -> None:
    """The relevance holds it; without a context there is no such field."""
    phone, plain = lists_of(
        trained(),
        ON,
        RankRequest("q", context=PHONE, explain=True, explore=False),
        RankRequest("q", explain=True, explore=False),
    )
    before = {item.id: item for item in plain.items}
    for item in phone.items:
        assert isinstance(item.relevance, float)
        assert isinstance(item.context, float)
        assert item.relevance - item.context == pytest.approx(before[item.id].relevance)
    assert b"context" in msgspec.json.encode(phone)
    assert b"context" not in msgspec.json.encode(plain)


def test_a_list_from_memory_follows_its_context() -> None:
    """While the store fails."""
    store = with_model(FaultyStore())

    async def scene(engine: Engine) -> tuple[RankResponse, RankResponse]:
        await engine.put_items("q", ITEMS)
        good = await ranked(engine, context=PHONE, explore=False)
        store.full = True
        return good, await ranked(engine, context=PHONE, explore=False)

    good, degraded = play(scene, ON, store=store)
    assert degraded.degraded
    assert ids(degraded) == ids(good)


@pytest.mark.parametrize(
    "context",
    [
        {str(number): "x" for number in range(9)},
        {"": "x"},
        {"x": ""},
        {"x": "y" * 257},
        {"x": 1},
        ["x"],
    ],
)
def test_odd_contexts_are_refused(context: Any) -> None:  # noqa: ANN401 (of any type)
    """As other fields are."""
    body = msgspec.json.encode({"query": "q", "context": context})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=RankRequest)


@pytest.mark.slow
def test_what_contexts_change_is_learned_from_the_log() -> None:
    """And followed from then on; the version says so."""
    rng = np.random.default_rng(5)
    queries = [f"q{number}" for number in range(12)]
    features = {query: rng.random((8, 2)) for query in queries}
    chosen = settings(
        contexts={"most": 16},
        ranking={"policy": "ebrank:estimator=exposure", "k": 5},
        training={"after_events": 0, "every_seconds": 0.0},
        examination={"severity": 0.0},
    )

    async def scene(engine: Engine) -> tuple[str, Model, list[RankResponse]]:
        for query in queries:
            rows = features[query].tolist()
            await engine.put_items(query, [ItemIn(str(n), row) for n, row in enumerate(rows)])
        for turn in range(60):
            for query in queries:
                kind = turn % 2
                shuffled: list[str | ItemIn] = [str(n) for n in rng.permutation(8)[:5]]
                request = RankRequest(query, items=shuffled, context=(PHONE, DESK)[kind])
                answer = await engine.rank(request)
                liked = features[query][:, kind] * 0.8
                clicks = [
                    click(f"{turn} {query} {item.id}", answer.ranking_id, item.id)
                    for item in answer.items
                    if rng.random() < liked[int(item.id)]
                ]
                await engine.feedback(clicks)
        await engine.train()
        await engine._training.finished()
        answers = [
            await ranked(engine, "q0", k=8, explain=True, context=context)
            for context in (PHONE, DESK)
        ]
        return (await engine.models()).training.outcome, engine.resources.active.model, answers

    outcome, model, answers = play(scene, chosen)
    assert outcome.endswith("; 2 contexts have preferences of their own")
    assert model.ranker.contexts_ is not None
    assert set(model.ranker.contexts_.numbers.tolist()) == {*numbers(PHONE), *numbers(DESK)}
    difference = features["q0"][:, 0] - features["q0"][:, 1]
    for answer, sign in zip(answers, (1.0, -1.0), strict=True):
        moved = [item.context for item in answer.items]
        liked = [difference[int(item.id)] for item in answer.items]
        assert sign * np.corrcoef(moved, liked)[0, 1] > 0.9  # type: ignore[arg-type]
