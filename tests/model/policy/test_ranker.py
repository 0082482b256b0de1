from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy

from ebrank import BehaviorStats, EBRanker, Examination, ParameterError, Policy
from ebrank.model.policy.policies import make, parse
from ebrank.model.policy.scaling import Scaling
from ebrank.typing import Features, Ints
from tests.model.prior.made_up import mean_loss


def world(seed: int = 0, items: int = 30) -> tuple[Features, BehaviorStats]:
    """Return candidates of which some have been shown, and liked the more the larger feature 0."""
    rng = np.random.default_rng(seed)
    features = rng.random((items, 3), dtype=np.float32)
    shown = rng.integers(0, 20, items)
    p = Examination()([2])[0]
    clicks = rng.binomial(shown, p * (0.1 + 0.6 * features[:, 0]))
    never = np.zeros_like(shown)
    return features, BehaviorStats.of(np.stack([never, shown], 1), np.stack([never, clicks], 1))


def slow_scores(
    ranker: EBRanker, features: Features, stats: BehaviorStats
) -> list[tuple[float, float]]:
    """Return (R̂, ε·MC) of each item as the paper's Algorithm 1 spells it, in plain Python."""
    assert ranker.state_ is not None
    values = ranker.policy.values()
    weights, intercept = ranker.state_["weights"], float(ranker.state_["intercept"][0])
    p = 1 / np.log2(3)
    out = []
    for i in range(len(stats)):
        a = float(np.exp(features[i].astype(float) @ weights + intercept))
        b = values["beta"]
        n, c = float(stats.shown[i]), float(stats.clicks[i])
        hits, trials = (c / p, n) if values["estimator"] == "ips" else (c, n * p)
        relevance = (hits + a) / (trials + a + b)
        out.append((relevance, values["epsilon"] * relevance / (n * p + a + b) ** 2))
    return out


# --- ranking -------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 50.0])
def test_ranking_follows_the_algorithm(estimator: str, epsilon: float) -> None:
    features, stats = world()
    ranker = EBRanker("ebrank", estimator=estimator, epsilon=epsilon).fit(features, stats)
    ranking = ranker.rank(features, stats, k=7)
    expected = slow_scores(ranker, features, stats)
    order = sorted(range(len(stats)), key=lambda i: -sum(expected[i]))[:7]
    assert ranking.order.tolist() == order
    np.testing.assert_allclose(ranking.relevance, [expected[i][0] for i in order], rtol=1e-6)
    np.testing.assert_allclose(
        ranking.bonus, [expected[i][1] for i in order], rtol=1e-5, atol=1e-12
    )
    np.testing.assert_allclose(ranking.scores, ranking.relevance + ranking.bonus)
    assert len(ranking) == 7
    assert len(ranker.rank(features, stats)) == len(stats)
    assert len(ranker.rank(features, stats, k=999)) == len(stats)


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_explanation_adds_up(estimator: str) -> None:
    features, stats = world()
    ranker = EBRanker("ebrank", epsilon=5.0, estimator=estimator).fit(features, stats)
    ranking = ranker.rank(features, stats, k=1)
    prior, sums = ranker.prior(features), stats.sums(Examination())
    trials = sums.shown if estimator == "ips" else sums.exposure
    for item in range(len(stats)):
        why = ranking.explain(item)
        weight = trials[item] / (trials[item] + prior.a[item] + prior.b[0])
        blend = weight * why.observed + (1 - weight) * why.prior
        assert why.relevance == pytest.approx(blend)
        assert why.bonus > 0
    top = ranking.explain(int(ranking.order[0]))
    assert top.relevance + top.bonus == pytest.approx(ranking.scores[0])
    assert str(top).startswith("prior 0.")
    with pytest.raises(ParameterError, match="0 to 29"):
        ranking.explain(30)


def test_ties_are_broken_by_seeded_keys_that_stay_with_the_position() -> None:
    features = np.zeros((8, 1), np.float32)
    nobody = BehaviorStats.zeros(8)
    orders = {tuple(EBRanker(seed=s).rank(features, nobody).order.tolist()) for s in range(5)}
    assert len(orders) == 5
    whole = EBRanker(seed=3).rank(features, nobody).order.tolist()
    part = EBRanker(seed=3).rank(features[:5], nobody[:5]).order.tolist()
    assert part == [item for item in whole if item < 5]
    keys = np.array([5, 3, 8, 1, 2, 9, 4, 7])
    by_key = EBRanker().rank(features, nobody, tie_keys=keys).order
    assert by_key.tolist() == np.argsort(keys).tolist()


def test_no_candidates_give_an_empty_list() -> None:
    ranking = EBRanker().rank(np.zeros((0, 3), np.float32), BehaviorStats.zeros(0), k=5)
    assert ranking.order.tolist() == []
    assert ranking.interval.shape == (0, 2)


def test_a_policy_that_draws_draws_anew_for_new_keys() -> None:
    features, stats = world()
    ranker = EBRanker("thompson").fit(features, stats)
    rng = np.random.default_rng(1)
    for keys in (rng.random(30), rng.integers(0, 2**40, 30), rng.integers(-9, 9, 30)):
        ranking = ranker.rank(features, stats, tie_keys=keys)
        again = ranker.rank(features, stats, tie_keys=keys)
        np.testing.assert_array_equal(again.scores, ranking.scores)
        other = ranker.rank(features, stats, tie_keys=keys[::-1].copy())
        assert not np.array_equal(other.candidates.scores, ranking.candidates.scores)
    draws = np.concatenate(
        [
            ranker.rank(features, stats, tie_keys=rng.random(30)).candidates.scores[:, None]
            for _ in range(200)
        ],
        axis=1,
    )
    correlations = np.corrcoef(draws)[np.triu_indices(30, 1)]
    assert np.abs(correlations).max() < 0.5  # items draw apart, also by keys below 1


# --- fitting -------------------------------------------------------------------------------------


def test_fit_starts_anew_unless_told_to_go_on() -> None:
    features, stats = world(items=300)
    ranker = EBRanker("ebrank", ridge=1e-3, tolerance=1e-6)
    first = ranker.fit(features, stats).state_
    again = ranker.fit(features, stats).state_
    assert first is not None
    assert again is not None
    np.testing.assert_array_equal(again["weights"], first["weights"])
    ranker.state_ = {**first, "weights": first["weights"] + 1.0}
    gone_on = ranker.fit(features, stats, warm_start=True).state_
    assert gone_on is not None
    np.testing.assert_allclose(gone_on["weights"], first["weights"], atol=1e-3)
    assert not np.array_equal(gone_on["weights"], first["weights"])


@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads_gives_the_same_bits(threads: int) -> None:
    features, stats = world(items=20_000)
    one, many = (EBRanker(threads=n).fit(features, stats) for n in (1, threads))
    np.testing.assert_array_equal(
        one.rank(features, stats).scores, many.rank(features, stats).scores
    )
    assert mean_loss(one, features, stats) == mean_loss(many, features, stats)


def test_losses_are_the_marginal_likelihood_of_rows_that_were_shown() -> None:
    features, stats = world()
    ranker = EBRanker("ebrank").fit(features, stats)
    prior, sums = ranker.prior(features), stats.sums(Examination())
    misses = np.maximum(sums.exposure - sums.clicks, 0.0)
    after = scipy.special.betaln(sums.clicks + prior.a, misses + 5.0)
    expected = np.where(sums.shown > 0, scipy.special.betaln(prior.a, 5.0) - after, np.nan)
    np.testing.assert_allclose(ranker.losses(features, stats), expected)
    with pytest.raises(ParameterError, match="30 rows of features, but behavior for 29"):
        ranker.losses(features, stats[:29])


def test_features_are_scaled_on_the_way_to_the_prior() -> None:
    raw = np.array([[100.0], [300.0], [200.0]], dtype=np.float32)
    stats = BehaviorStats.zeros(3)
    state = {"weights": np.array([2.0]), "intercept": np.array([-1.0]), "ridge": np.ones(1)}
    scaled, by_hand = EBRanker("ebrank", scaling=Scaling("query")), EBRanker("ebrank")
    scaled.state_ = by_hand.state_ = state
    np.testing.assert_allclose(scaled.prior(raw).a, np.exp([-1.0, 1.0, 0.0]))
    plain = by_hand.rank(np.array([[0.0], [1.0], [0.5]], dtype=np.float32), stats)
    ranking = scaled.rank(raw, stats)
    np.testing.assert_array_equal(ranking.scores, plain.scores)
    given_prior = scaled.ranked(scaled.prior(raw), stats)
    np.testing.assert_array_equal(ranking.order, given_prior.order)


# --- as an object --------------------------------------------------------------------------------


def test_policies_come_as_objects_texts_and_parameters() -> None:
    assert str(EBRanker().policy) == "auto"
    text = "ebrank:epsilon=5,estimator=exposure"
    for ranker in (
        EBRanker(text),
        EBRanker(parse(text)),
        EBRanker("ebrank", estimator="exposure", epsilon=5),
        EBRanker("ebrank:estimator=exposure", epsilon=5.0),
    ):
        assert isinstance(ranker.policy, Policy)
        assert str(ranker.policy) == text
        assert repr(ranker) == f"EBRanker('{text}')"
    other = EBRanker("thompson", examination=Examination(cutoff=5), seed=3)
    assert repr(other).startswith("EBRanker('thompson', examination=Examination(")
    assert repr(other).endswith("seed=3)")


@pytest.mark.parametrize("policy", ["ebrank:epsilon=3,estimator=exposure", "thompson", "auto"])
def test_copies_and_pickles_rank_alike(policy: str) -> None:
    features, stats = world()
    ranker = EBRanker(policy, seed=2, examination=Examination(cutoff=3)).fit(features, stats)
    before = ranker.rank(features, stats)
    for twin in (copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        np.testing.assert_array_equal(twin.rank(features, stats).scores, before.scores)
        assert repr(twin) == repr(ranker)
    kept = pickle.loads(pickle.dumps(before))
    np.testing.assert_array_equal(kept.scores, before.scores)
    assert kept.explain(0) == before.explain(0)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"beta": -1.0}, "ebrank: beta takes a number of 1e-06 or more, not -1.0"),
        ({"gamma": 1.0}, "ebrank has no parameter 'gamma'"),
        ({"policy": "nothing"}, "unknown policy 'nothing'"),
        ({"policy": make}, "not a policy"),
        ({"examination": 5}, "not an examination: 5"),
        ({"scaling": "query"}, "not a scaling: 'query'"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"threads": 0}, "threads must be a whole number"),
    ],
)
def test_parameters_out_of_range_are_refused(bad: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        EBRanker(**{"policy": "ebrank", **bad})


def test_bad_calls_are_refused_in_words() -> None:
    features, stats = world()
    with pytest.raises(ParameterError, match="behavior for 29"):
        EBRanker().rank(features, stats[:29])
    with pytest.raises(ParameterError, match="behavior for 29"):
        EBRanker().fit(features, stats[:29])
    with pytest.raises(ParameterError, match="must be a matrix"):
        EBRanker().fit(features[:, 0], stats)
    for k in (0, -1, 2.5, "3", True):
        with pytest.raises(ParameterError, match="k must"):
            EBRanker().rank(features, stats, k=k)  # type: ignore[arg-type]
    for lists in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="lists must be a number of 0 or more"):
            EBRanker("auto").rank(features, stats, lists=lists)
    with pytest.raises(ParameterError, match="item must"):
        EBRanker().rank(features, stats).explain(1.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="one key per candidate"):
        EBRanker().rank(features, stats, tie_keys=[1, 2])


# --- nothing to tune -----------------------------------------------------------------------------


def sure_and_unsure() -> tuple[Features, BehaviorStats]:
    """Return two items alike in features: one that users know and like a bit more, one unseen."""
    return np.full((2, 3), 0.5, np.float32), BehaviorStats.of([[300, 0], [2, 0]], [[45, 0], [0, 0]])


def exploring(policy: str = "auto") -> EBRanker:
    features, _ = world(items=200)
    rng = np.random.default_rng(5)
    shown = rng.integers(0, 20, (200, 2))
    clicks = rng.binomial(shown, Examination()([1, 2]) * (0.02 + 0.3 * features[:, :1] ** 2))
    return EBRanker(policy).fit(features, BehaviorStats.of(shown, clicks))


def test_more_lists_to_come_more_exploration() -> None:
    ranker, (features, stats) = exploring(), sure_and_unsure()
    bonuses, orders = [], []
    for lists in (1.0, 10.0, 100.0, 10_000.0):
        ranking = ranker.rank(features, stats, lists=lists)
        bonuses.append(ranking.candidates.bonus)
        orders.append(ranking.order.tolist())
    assert orders[0] == [0, 1]  # nothing is left to profit from what is learned
    assert orders[-1] == [1, 0]  # plenty is
    gains = np.diff(bonuses, axis=0)
    assert np.all(gains > 0)
    assert np.all(gains[:, 1] > gains[:, 0])  # more is to be learned of the unseen


@pytest.mark.parametrize("policy", ["auto:horizon=50", "ebrank"])
def test_lists_do_not_matter_to_a_policy_whose_horizon_is_given_or_that_has_none(
    policy: str,
) -> None:
    ranker, (features, stats) = exploring(policy), sure_and_unsure()
    once, again = (ranker.rank(features, stats, lists=lists) for lists in (1.0, 1e5))
    np.testing.assert_array_equal(once.candidates.scores, again.candidates.scores)


def test_without_a_plan_fifty_lists_matter() -> None:
    ranker, (features, stats) = exploring(), sure_and_unsure()
    usual, fifty = (ranker.rank(features, stats, lists=lists).scores for lists in (None, 50.0))
    np.testing.assert_array_equal(usual, fifty)


def test_explanations_and_intervals_of_a_learned_shape() -> None:
    ranker, (features, stats) = exploring(), sure_and_unsure()
    ranking = ranker.rank(features, stats)
    liked, unseen = ranking.explain(0), ranking.explain(1)
    assert liked.prior == pytest.approx(unseen.prior)
    assert unseen.observed == 0.0
    assert unseen.relevance < unseen.prior < liked.relevance < liked.observed + 0.01
    intervals = dict(zip(ranking.order.tolist(), ranking.interval, strict=True))
    for item, why in ((0, liked), (1, unseen)):
        low, high = intervals[item]
        assert 0.0 <= low < why.relevance < high <= 1.0
    assert np.diff(intervals[1]) > 2 * np.diff(intervals[0])


def test_counts_are_worth_what_the_learned_curve_says() -> None:
    rng = np.random.default_rng(8)
    features = rng.random((3000, 2), dtype=np.float32)
    shown = rng.multinomial(20, [0.5, 0.5], 3000)
    clicks = rng.binomial(shown, np.array([1.0, 0.3]) * (0.1 + 0.5 * features[:, :1]))
    stats = BehaviorStats.of(shown, clicks)
    ranker = EBRanker("auto").fit(features, stats)
    assert ranker.curve([1, 2]) == pytest.approx([1.0, 0.3], abs=0.05)
    given = EBRanker("auto:examination=given").fit(features, stats)
    assert given.curve == given.examination == ranker.examination
    assert ranker.rank(features[:1], stats[:1]).candidates.examination == ranker.curve
    assert mean_loss(ranker, features, stats) < mean_loss(given, features, stats)


# --- held-out queries ----------------------------------------------------------------------------


def of_queries(seed: int = 6) -> tuple[Features, BehaviorStats, Ints]:
    """Return 30 queries of 12 items with features of their own that say nothing."""
    rng = np.random.default_rng(seed)
    features = rng.random((360, 12), dtype=np.float32)
    shown = rng.integers(0, 30, 360)
    clicks = rng.binomial(shown, 0.1 + 0.3 * features[:, 0])
    return features, BehaviorStats.of(shown, clicks), np.repeat(np.arange(30) * 7 + 100, 12)


@pytest.mark.parametrize("policy", ["ebrank:estimator=exposure", "auto"])
def test_held_out_losses_are_those_of_fits_to_other_queries(policy: str) -> None:
    """They are the same for queries in any other fold, whatever users did with this one."""
    features, stats, queries = of_queries()
    ranker = EBRanker(policy, threads=1).fit(features, stats, groups=queries)
    losses = ranker.held_out_losses(features, stats, queries)
    shown = stats.sums(ranker.examination).shown > 0
    np.testing.assert_array_equal(np.isnan(losses), ~shown)
    assert losses[shown].mean() > mean_loss(ranker, features, stats)
    changed = BehaviorStats(stats.counts.copy())
    first = queries == queries[0]
    changed.counts[first, 1] = changed.counts[first, 0] - changed.counts[first, 1]
    others = ranker.held_out_losses(features, changed, queries)
    same = losses == others
    together = set(queries[shown & same])
    assert len(together) == 5  # those held out with it, whose fit has not seen it
    assert queries[0] not in together


@pytest.mark.parametrize("policy", ["ebrank:estimator=exposure", "auto"])
def test_features_may_be_anything_like_an_array(policy: str) -> None:
    features, stats, queries = of_queries()
    losses = []
    for own in (features, features.tolist()):
        ranker = EBRanker(policy).fit(own, stats, groups=queries)
        ranker.fit(own, stats, groups=queries, warm_start=True)
        losses.append(ranker.held_out_losses(own, stats, queries))
    np.testing.assert_array_equal(losses[0], losses[1])


def test_groups_are_one_number_per_row() -> None:
    features, stats, queries = of_queries()
    with pytest.raises(ParameterError, match="groups must hold one value per row"):
        EBRanker().fit(features, stats, groups=queries[:-1])
    with pytest.raises(ParameterError, match="fit the prior first"):
        EBRanker().held_out_losses(features, stats, queries)


@pytest.mark.parametrize("policy", ["auto", "ebrank"])
def test_rows_too_rare_to_learn_from_have_a_loss(policy: str) -> None:
    features, stats, queries = of_queries()
    ranker = EBRanker(policy, min_impressions=8).fit(features, stats, groups=queries)
    for losses in (
        ranker.losses(features, stats),
        ranker.held_out_losses(features, stats, queries),
    ):
        assert np.array_equal(np.isnan(losses), stats.shown == 0)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1.0, np.nan, 2.0], "items has no value in row 1"),
        (["a", None, "b"], "items must be all texts or all numbers, and none may be missing"),
        (["a", 7, "b"], "items must be all texts or all numbers"),
    ],
)
def test_every_row_has_its_item(values: list[object], problem: str) -> None:
    features, stats = world()
    items = np.array(values * 10, None if isinstance(values[0], float) else object)
    with pytest.raises(ParameterError, match=problem):
        EBRanker().fit(features, stats, items=items)
