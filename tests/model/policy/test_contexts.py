"""What contexts change: learned from a log, found again, and nothing where there is nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ebrank import BehaviorStats, EBRanker
from ebrank.errors import ParameterError
from ebrank.model.policy import model_file
from ebrank.model.policy.contexts import (
    NUMBERS,
    Contexts,
    Impressions,
    _Table,
    learn,
    moved,
    numbers,
)
from ebrank.typing import Features, Floats, Ints

ITEMS, QUERIES, LISTS, K = 20, 15, 400, 5
MOBILE, DESKTOP = numbers({"device": "mobile"}), numbers({"device": "desktop"})


@cache
def world(
    effect: float, *, adapted: float = 0.0, seed: int = 1
) -> tuple[Features, Floats, Impressions, Ints]:
    """Return features, relevances over all who saw each item, impressions, and items' queries.

    Phones like the first feature by `effect` more than all do, desks by as much less. Items are
    listed at random, or the more often in a context the better they fit there.
    """
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(QUERIES * ITEMS, 3)).astype(np.float32)
    base = -1.0 + features @ np.array([0.3, 0.5, 0.0]) + rng.normal(0.0, 0.3, len(features))
    p = 1.0 / np.log2(np.arange(2, K + 2))
    rows, outcomes, lists = [], [], []
    for query in range(QUERIES):
        own = np.arange(query * ITEMS, (query + 1) * ITEMS)
        for turn in range(LISTS):
            sign = 1.0 if turn % 2 else -1.0
            keys = rng.gumbel(size=ITEMS) + adapted * sign * features[own, 0]
            shown = own[np.argsort(-keys)[:K]]
            chance = p / (1.0 + np.exp(-base[shown] - sign * effect * features[shown, 0]))
            rows.append(shown)
            outcomes.append(rng.random(K) < chance)
            lists.append(np.full(K, turn % 2))
    found = Impressions(
        np.concatenate(rows),
        np.tile(p, QUERIES * LISTS),
        np.concatenate(outcomes).astype(float),
        np.concatenate(lists),
        [DESKTOP, MOBILE],
    )
    clicks = np.bincount(found.rows, found.outcomes, len(features)) + 1.0
    exposure = np.bincount(found.rows, found.p, len(features)) + 3.0
    return features, clicks / exposure, found, np.arange(len(features)) // ITEMS


def difference(contexts: Contexts) -> Floats:
    """Return what a phone adds to the weights, beside a desk."""
    by_number = dict(zip(contexts.numbers.tolist(), contexts.weights, strict=True))
    return np.asarray(by_number[MOBILE[0]] - by_number[DESKTOP[0]])


@pytest.mark.slow
def test_what_a_context_changes_is_found_again() -> None:
    """By how much, for which feature, and how often each context was there."""
    found = learn(*world(0.6))
    assert found is not None
    assert found.numbers.tolist() == sorted(MOBILE + DESKTOP)
    assert found.shares == pytest.approx([0.5, 0.5])
    assert difference(found)[:3] == pytest.approx([1.2, 0.0, 0.0], abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("adapted", [0.0, 1.0, 2.0])
def test_relevance_in_a_context_is_nearer_to_the_truth(adapted: float) -> None:
    """Also where each context mostly saw what it likes, which relevances over all hold already."""
    features, relevance, impressions, groups = world(0.6, adapted=adapted)
    found = learn(features, relevance, impressions, groups)
    assert found is not None
    for context, sign in ((MOBILE, 1.0), (DESKTOP, -1.0)):
        logits = -1.0 + features @ np.array([0.3 + 0.6 * sign, 0.5, 0.0])
        truth = 1.0 / (1.0 + np.exp(-logits))
        shifts = found.shifts(features, context)
        assert shifts is not None
        lists = impressions.lists == impressions.contexts.index(context)
        seen = np.bincount(impressions.rows[lists], minlength=len(features))
        before, after = (
            float(np.average((relevance + change - truth) ** 2, weights=seen))
            for change in (0.0, moved(relevance, shifts))
        )
        assert after < before


def test_what_all_contexts_share_is_left_to_relevance() -> None:
    """A pair that every request has changes nothing, even where relevances are wrong."""
    features, relevance, impressions, groups = world(0.6)
    wrong = np.clip(relevance * np.exp(0.8 * features[:, 1]), 0.01, 0.99)
    always = (4000,)
    impressions = replace(impressions, contexts=[always, always])
    assert learn(features, wrong, impressions, groups) is None


@pytest.mark.slow
def test_contexts_that_change_nothing_are_not_learned() -> None:
    """Nor those that too few were in."""
    assert learn(*world(0.0)) is None
    assert learn(*world(0.0, adapted=2.0)) is None
    features, relevance, impressions, groups = world(0.6)
    few = Impressions(
        impressions.rows[:80],
        impressions.p[:80],
        impressions.outcomes[:80],
        impressions.lists[:80],
        impressions.contexts,
    )
    assert learn(features, relevance, few, groups) is None


def test_the_gradient_is_that_of_the_loss() -> None:
    """By finite differences, with outcomes between 0 and 1."""
    features, relevance, impressions, _ = world(0.6)
    rng = np.random.default_rng(3)
    some_worth = impressions.outcomes * rng.random(len(impressions))
    impressions = replace(impressions, outcomes=some_worth)
    chosen = impressions.frequent(16)
    some = np.arange(0, len(impressions), 7)
    unlike = impressions.hot(chosen) - 0.4
    table = _Table.of(features, relevance, impressions, some, unlike)
    included = rng.random(len(table.items)) < 0.8
    objective = table.objective(0.3, included)
    theta = rng.normal(0.0, 0.3, table.size)
    _, gradient = objective(theta)
    for at, slope in enumerate(gradient):
        step = np.zeros(table.size)
        step[at] = 1e-5
        numeric = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-5
        assert slope == pytest.approx(numeric, rel=1e-5, abs=1e-4)


def test_a_relevance_moves_by_its_logit() -> None:
    """Within 0 and 1; beyond, as `ips` estimates some, it stays."""
    relevance = np.array([0.0, 0.1, 0.5, 0.9, 1.0, 1.7])
    for shift in (-2.0, 0.0, 0.7):
        change = moved(relevance, np.full(6, shift))
        inner = relevance[1:4]
        expected = 1.0 / (1.0 + (1.0 - inner) / inner * np.exp(-shift))
        assert relevance[1:4] + change[1:4] == pytest.approx(expected)
        assert change[[0, 4, 5]].tolist() == [0.0, 0.0, 0.0]


def test_numbers_depend_on_pairs_alone() -> None:
    """Not on their order; and no two pairs are one by where a name ends."""
    both = numbers({"device": "mobile", "segment": "new"})
    assert both == numbers({"segment": "new", "device": "mobile"})
    assert set(numbers({"device": "mobile"})) < set(both)
    assert numbers({"a": "b=c"}) != numbers({"a=b": "c"})
    assert all(0 <= number < NUMBERS for number in both)
    assert numbers({"half": "\ud83d"}), "any text will do"


@cache
def fitted() -> tuple[EBRanker, Features, BehaviorStats]:
    """Return a ranker that has learned contexts, with its rows."""
    features, _, impressions, groups = world(0.6)
    rows, place = impressions.rows, np.tile(np.arange(K), QUERIES * LISTS)
    shown, clicked = (
        np.bincount(rows * K + place, weights, len(features) * K).reshape(-1, K)
        for weights in (None, impressions.outcomes)
    )
    behavior = BehaviorStats(np.stack([shown, clicked], axis=1).astype(np.int32))
    ranker = EBRanker("ebrank:estimator=exposure", threads=1).fit(features, behavior)
    return ranker.fit_contexts(features, behavior, impressions, groups), features, behavior


def test_a_ranker_ranks_in_a_context() -> None:
    """It has another order there, says why, and is itself where the context tells nothing."""
    ranker, features, behavior = fitted()
    some = np.arange(ITEMS)
    plain = ranker.rank(features[some], behavior[some])
    phone = ranker.rank(features[some], behavior[some], context={"device": "mobile"})
    unknown = ranker.rank(features[some], behavior[some], context={"device": "watch"})
    assert plain.order.tolist() == unknown.order.tolist() != phone.order.tolist()
    assert plain.candidates.scores.tobytes() == unknown.candidates.scores.tobytes()
    before, after = plain.candidates, phone.candidates
    assert after.moved is not None
    assert after.relevance == pytest.approx(before.relevance + after.moved)
    assert after.bonus == pytest.approx(before.bonus)
    assert np.corrcoef(after.moved, features[some, 0])[0, 1] > 0.8
    item = int(phone.order[0])
    assert f"{after.moved[item]:+.3f} by the context" in str(phone.explain(item))
    assert "context" not in str(plain.explain(item))


def test_contexts_are_a_part_of_the_model_file() -> None:
    """They come back bit by bit; a file without any is what it was before there were contexts."""
    ranker, features, behavior = fitted()
    content = model_file.to_bytes(ranker)
    again = model_file.from_bytes(content, "a file")
    assert ranker.contexts_ is not None
    assert again.contexts_ is not None
    for name in model_file.OF_CONTEXTS:
        assert np.array_equal(getattr(ranker.contexts_, name), getattr(again.contexts_, name))
    phone = {"device": "mobile"}
    one, other = (one.rank(features[:9], behavior[:9], context=phone) for one in (ranker, again))
    assert one.scores.tobytes() == other.scores.tobytes()
    again.contexts_ = None
    assert b"contexts" not in model_file.to_bytes(again)


def test_contexts_of_other_features_are_refused() -> None:
    """As a prior would be."""
    ranker, features, _ = fitted()
    with pytest.raises(ParameterError, match="of 3 features, not 2"):
        ranker.shifts(features[:, :2], MOBILE)
