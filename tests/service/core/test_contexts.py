"""Contexts of requests: logged as numbers, learned from, and followed by lists."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.model.policy.contexts import Contexts, numbers
from ebrank.model.policy.scaling import Scaling
from ebrank.service.api import ItemIn, RankResponse
from tests.service.faulty import FaultyStore
from tests.service.scenes import Scene, add_model, ids, items, linear_state, played, settings
from tests.service.store.blocking import run

PHONE, DESK = {"device": "mobile"}, {"device": "desktop"}
# Lists that nobody confirms change nothing: those of a test can be compared.
OFF: dict[str, Any] = {"ranking": {"policy": "ebrank"}, "events": {"impressions": "confirmed"}}
ON = settings(contexts={"most": 16}, **OFF)
ITEMS = items(8)


def trained(*, contexts: bool = True) -> FaultyStore:
    """Return a store whose model says that phones like the first feature, desks the second."""
    store = FaultyStore()
    ranker = EBRanker("ebrank", scaling=Scaling("query"))
    ranker.state_ = linear_state(0.4, 0.4)
    if contexts:
        both = sorted(numbers(PHONE) + numbers(DESK))
        sign = 1.0 if both[0] == numbers(PHONE)[0] else -1.0
        weights = sign * np.array([[2.0, -2.0, 0.0], [-2.0, 2.0, 0.0]])
        ranker.contexts_ = Contexts(np.array(both), weights, np.array([0.5, 0.5]))
    run(add_model(store, ranker))
    return store


def scores(answer: RankResponse) -> dict[str, float]:
    """Return what each item was sorted by."""
    return {item.id: item.score for item in answer.items}


@played(ON, count=8)
async def test_a_list_logs_the_numbers_of_its_context(engine: Scene) -> None:
    """And nothing else of it; without a context, or where contexts are off, nothing."""
    both = {"segment": "new", **PHONE}
    for each in (engine, await engine.opened(settings(**OFF))):
        for context in (both, None, {}):
            await each.ranked(context=context)
    assert [entry.contexts for entry in await engine.lists()] == [numbers(both), *[()] * 5]


@played(ON, on=trained, count=8)
async def test_lists_follow_their_context(engine: Scene) -> None:
    """Phones see more of the first feature, desks of the second, and others what all see."""
    phone, desk, plain, unknown = [
        await engine.ranked(context=context) for context in (PHONE, DESK, None, {"device": "watch"})
    ]
    first, second = np.array([item.features for item in ITEMS]).T
    names = [item.id for item in ITEMS]
    for answer, sign in ((phone, 1.0), (desk, -1.0)):
        change = [scores(answer)[name] - scores(plain)[name] for name in names]
        assert sign * np.corrcoef(change, first - second)[0, 1] > 0.9
    assert ids(phone) != ids(desk)
    off = await (await engine.opened(settings(**OFF))).ranked(context=PHONE)
    for same in (unknown, off):
        assert scores(same) == scores(plain), "to the bit"
        assert ids(same) == ids(plain)
    engine.store.full = True
    degraded = await engine.ranked(context=PHONE)
    engine.store.full = False
    assert degraded.degraded
    assert ids(degraded) == ids(phone)


@played(ON, on=lambda: trained(contexts=False), count=8)
async def test_a_model_without_contexts_makes_the_same_lists_for_all(engine: Scene) -> None:
    assert scores(await engine.ranked(context=PHONE)) == scores(await engine.ranked())


@played(ON, on=trained, count=8)
async def test_an_explanation_tells_what_the_context_did(engine: Scene) -> None:
    """The relevance holds it; without a context there is no such field.

    A list of some candidates is moved as one of all, in whatever order they are given.
    """
    some = ["i5", "i1", "i6"]
    phone, plain, part = [
        await engine.ranked(explain=True, explore=False, **asked)
        for asked in ({"context": PHONE}, {}, {"context": PHONE, "items": some})
    ]
    before = {item.id: item for item in plain.items}
    for item in phone.items:
        assert isinstance(item.relevance, float)
        assert isinstance(item.context, float)
        assert item.relevance - item.context == pytest.approx(before[item.id].relevance)
    assert b"context" in msgspec.json.encode(phone)
    assert b"context" not in msgspec.json.encode(plain)
    moved = {item.id: item.context for item in phone.items}
    assert all(moved.values())
    assert {item.id: item.context for item in part.items} == {name: moved[name] for name in some}


@played(ON, on=trained, count=8)
async def test_cached_effects_of_a_context_follow_the_items(engine: Scene) -> None:
    """After a change, lists are those of a server that has just started."""
    await engine.ranked(context=PHONE)
    await engine.put_items("q", [ItemIn("i0", [9.0, -9.0]), ItemIn("new", [4.0, 0.0])])
    remembered = await engine.ranked(context=PHONE)
    assert scores(remembered) == scores(await (await engine.opened()).ranked(context=PHONE))


@pytest.mark.slow
@played(
    settings(
        contexts={"most": 16},
        ranking={"policy": "ebrank:estimator=exposure", "k": 5},
        training={"after_events": 0, "every_seconds": 0.0},
        examination={"severity": 0.0},
    )
)
async def test_what_contexts_change_is_learned_from_the_log(engine: Scene) -> None:
    """And followed from then on; the version says so."""
    rng = np.random.default_rng(5)
    features = {f"q{number}": rng.random((8, 2)) for number in range(12)}
    for query, table in features.items():
        rows = [ItemIn(str(n), row) for n, row in enumerate(table.tolist())]
        await engine.put_items(query, rows)
    for turn in range(60):
        for query, table in features.items():
            some, kind = [str(n) for n in rng.permutation(8)[:5]], turn % 2
            answer = await engine.ranked(query, items=some, context=(PHONE, DESK)[kind])
            liked = [n for n in ids(answer) if rng.random() < 0.8 * table[int(n), kind]]
            if liked:
                await engine.clicked(answer, *liked)
    await engine.train()
    await engine._training.finished()
    outcome = (await engine.models()).training.outcome
    assert outcome.endswith("; 2 contexts have preferences of their own")
    contexts = engine.resources.active.model.ranker.contexts_
    assert contexts is not None
    assert set(contexts.numbers.tolist()) == {*numbers(PHONE), *numbers(DESK)}
    difference = features["q0"][:, 0] - features["q0"][:, 1]
    for context, sign in ((PHONE, 1.0), (DESK, -1.0)):
        answer = await engine.ranked("q0", k=8, explain=True, context=context)
        moved = [item.context for item in answer.items]
        better_here = [difference[int(item.id)] for item in answer.items]
        assert sign * np.corrcoef(moved, better_here)[0, 1] > 0.9  # type: ignore[arg-type]
