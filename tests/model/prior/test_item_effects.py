"""Evidence from other queries: messages, their sums, and how much they count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize

from ebrank import BehaviorStats, EBRanker
from ebrank.errors import ParameterError
from ebrank.model.prior import item_effects
from ebrank.model.prior.item_effects import UNIT, Elsewhere, elsewhere, messages, others
from ebrank.model.prior.kernels import OWN_VARIANCE, WIDTH
from ebrank.typing import Features, Floats, Ints
from tests.model.prior.made_up import mean_loss

rates = st.floats(1e-3, 0.97)


def message(mean: float, clicks: float, exposure: float) -> Floats:
    """Return S' and V' of one row."""
    return np.asarray(messages(*np.array([[mean], [clicks], [exposure]]))[0] * UNIT, np.float64)


@given(rates, st.floats(0.0, 60.0), st.floats(0.0, 400.0))
def test_a_message_is_the_likelihood_at_its_mode_less_what_the_query_has_of_its_own(
    mean: float, clicks: float, more: float
) -> None:
    exposure = clicks + more + 0.1
    center = np.log(mean / (1 - mean))

    def relevance(theta: float) -> float:
        return float(1 / (1 + np.exp(-center - theta)))

    def height(theta: float) -> float:
        r = relevance(theta)
        likelihood = clicks * np.log(r) + (exposure - clicks) * np.log1p(-r)
        return float(theta**2 / (2 * WIDTH) - likelihood)

    theta = optimize.minimize_scalar(height, bounds=(-9, 9), method="bounded").x
    r = relevance(theta)
    v = exposure * r * (1 - r)
    s = v * theta + clicks - exposure * r
    wanted = np.array([s, v]) / (1 + v * OWN_VARIANCE)
    assert message(mean, clicks, exposure) == pytest.approx(wanted, rel=2e-3, abs=2e-3)


def test_an_effect_is_the_posterior_mean_of_a_normal_likelihood() -> None:
    others = np.array([[int(1.5 / UNIT), int(2.5 / UNIT), 3]])
    variance = 0.4

    def density(u: float) -> float:
        return float(np.exp(1.5 * u - 2.5 * u * u / 2 - u * u / (2 * variance)))

    mass = integrate.quad(density, -9, 9)[0]
    mean = integrate.quad(lambda u: u * density(u), -9, 9)[0] / mass
    found = elsewhere(others, variance)
    assert found.effect == pytest.approx([mean], abs=1e-6)
    assert found.queries.tolist() == [3]


@given(rates)
def test_nobody_says_anything_about_an_item_that_nobody_has_seen(mean: float) -> None:
    assert messages(*np.array([[mean], [0.0], [0.0]])).tolist() == [[0, 0]]


class World(NamedTuple):
    """Query-item pairs of a shop whose items have effects."""

    features: Features
    stats: BehaviorStats
    queries: Ints
    items: Ints
    effect: Floats

    def fit(self, policy: str = "auto", items: Ints | None = None) -> EBRanker:
        """Return a policy, fitted to it."""
        own = self.items if items is None else items
        return EBRanker(policy).fit(self.features, self.stats, groups=self.queries, items=own)

    def evidence(self, ranker: EBRanker) -> Elsewhere:
        """Return evidence about the items of all rows from other queries."""
        found = ranker.elsewhere(self.features, self.stats, self.items)
        assert found is not None
        return found


def shop(tau: float, seed: int = 0, *, queries: int = 120, candidates: int = 20) -> World:
    """Return what users did with random lists of ten items of 100."""
    rng = np.random.default_rng(seed)
    items = np.concatenate([rng.choice(100, candidates, replace=False) for _ in range(queries)])
    effect = rng.normal(size=100) * tau
    features = rng.normal(size=(len(items), 3)).astype(np.float32)
    own = rng.normal(size=len(items)) * 0.4
    relevance = 1 / (1 + np.exp(1.5 - 0.5 * features.sum(axis=1) - effect[items] - own))
    stats, looked = BehaviorStats.zeros(len(items)), 1 / np.log2(np.arange(2, 12))
    for query in range(queries):
        for _ in range(12):
            listed = query * candidates + rng.choice(candidates, 10, replace=False)
            stats.record(listed, rng.random(10) < looked * relevance[listed])
    return World(features, stats, np.repeat(np.arange(queries), candidates), items, effect[items])


@pytest.fixture(scope="module")
def differing() -> World:
    """A shop whose items differ by what features do not say."""
    return shop(1.0)


@pytest.fixture(scope="module")
def fitted(differing: World) -> EBRanker:
    """`auto`, fitted to it."""
    return differing.fit()


def test_effects_are_found_where_there_are_some(differing: World, fitted: EBRanker) -> None:
    found = differing.evidence(fitted)
    assert np.corrcoef(found.effect, differing.effect)[0, 1] > 0.85
    alone = differing.fit("auto:shared=none")
    assert item_effects.VARIANCE not in (alone.state_ or {})
    assert mean_loss(fitted, *differing[:2], differing.items) < mean_loss(alone, *differing[:2])


def test_without_effects_nothing_changes_a_bit() -> None:
    same = shop(0.0, seed=1)
    shared, alone = same.fit(), same.fit("auto:shared=none")
    assert shared.elsewhere(same.features, same.stats, same.items) is None
    assert np.array_equal(shared.prior(same.features).a, alone.prior(same.features).a)


def test_items_of_one_query_each_share_nothing(differing: World) -> None:
    own = np.arange(len(differing.features))
    alone = differing.fit(items=own)
    assert alone.elsewhere(differing.features, differing.stats, own) is None


def test_a_query_gets_nothing_of_its_own_evidence_back(differing: World, fitted: EBRanker) -> None:
    own, counts = differing.queries == 7, differing.stats.counts.copy()
    counts[own] = 0
    before = differing.evidence(fitted)
    after = differing._replace(stats=BehaviorStats(counts)).evidence(fitted)
    assert np.array_equal(before.effect[own], after.effect[own])  # to the bit
    assert np.array_equal(before.queries[own], after.queries[own])
    others = np.isin(differing.items, differing.items[own]) & ~own
    assert not np.allclose(before.effect[others], after.effect[others])


def test_a_new_item_starts_with_the_evidence_from_other_queries(
    differing: World, fitted: EBRanker
) -> None:
    found = differing.evidence(fitted)
    places = np.array([found.effect.argmax(), found.effect.argmin()])
    same = np.repeat(differing.features[:1], 2, axis=0)
    unseen = BehaviorStats.zeros(2)
    plain = fitted.rank(same, unseen)
    ranking = fitted.rank(same, unseen, elsewhere=found.rows(places))
    assert plain.relevance[0] == plain.relevance[1]
    assert ranking.order.tolist() == [0, 1]
    best, why = ranking.candidates.relevance[0], ranking.explain(0)
    assert why.prior == pytest.approx(plain.relevance[0])
    assert why.prior + why.elsewhere == pytest.approx(best)
    assert f"{why.elsewhere:+.3f} from {why.queries} other queries" in str(why)
    assert "other quer" not in str(plain.explain(0))


def test_what_cannot_be_is_refused(fitted: EBRanker, differing: World) -> None:
    features, stats, queries, items, _ = differing
    with pytest.raises(ParameterError, match="items must hold one value per row"):
        EBRanker("auto").fit(features, stats, groups=queries, items=items[1:])
    with pytest.raises(ParameterError, match="cannot share evidence between queries; shape can"):
        EBRanker("ebrank", shared="learned")
    found = differing.evidence(fitted)
    with pytest.raises(ParameterError, match="not of these candidates"):
        fitted.rank(features[:3], stats[:3], elsewhere=found)
    with pytest.raises(ParameterError, match="ebrank has no use for `elsewhere`"):
        EBRanker("ebrank").rank(features, stats, elsewhere=found)
    state = {**(fitted.state_ or {}), item_effects.VARIANCE: np.array([99.0])}
    with pytest.raises(ParameterError, match="from 0 to"):
        fitted.policy.prior.check_state(state)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9), st.integers(0, 9)), max_size=9))
def test_others_are_all_rows_of_the_item_but_one(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, np.int64).reshape(-1, 3)
    own, items = table[:, 1:].astype(np.int32), table[:, 0]
    counted = item_effects.counted(own)
    wanted = [
        counted[(items == item) & (np.arange(len(rows)) != row)].sum(axis=0)
        for row, item in enumerate(items.tolist())
    ]
    assert others(own, items).tolist() == np.array(wanted).reshape(-1, 3).tolist()
    some = np.arange(len(rows))[::2]
    assert others(own, items, some).tolist() == others(own, items)[some].tolist()
