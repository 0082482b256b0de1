from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as distributions

from ebrank import BehaviorStats, EBRanker, Examination, ParameterError
from ebrank.features import Scaling
from ebrank.policy import parse
from ebrank.typing import Features


def world(seed: int = 0, items: int = 30) -> tuple[Features, BehaviorStats]:
    """Return candidates of which some have been shown, and liked the more the larger feature 0."""
    rng = np.random.default_rng(seed)
    features = rng.random((items, 3), dtype=np.float32)
    shown = rng.integers(0, 20, items)
    clicks = rng.binomial(shown, 0.63 * (0.1 + 0.6 * features[:, 0]))
    counts = np.zeros((items, 2, 5), np.int32)
    counts[:, 0, 1], counts[:, 1, 1] = shown, clicks  # always at rank 2
    return features, BehaviorStats(counts)


def slow_scores(
    ranker: EBRanker, features: Features, stats: BehaviorStats
) -> list[tuple[float, float]]:
    """Return (R̂, ε·MC) of each item as the paper's Algorithm 1 spells it, in plain Python."""
    assert ranker.state_ is not None
    values = ranker.policy.values()
    out = []
    for i in range(len(stats)):
        score = float(features[i].astype(float) @ ranker.state_["weights"])
        a = float(np.exp(np.clip(score + ranker.state_["intercept"][0], -10, 10)))
        b = values["beta"]
        p = 1 / np.log2(3)
        n, c = float(stats.shown[i]), float(stats.clicks[i])
        hits, trials = (c / p, n) if values["estimator"] == "ips" else (c, n * p)
        relevance = (hits + a) / (trials + a + b)
        out.append((relevance, values["epsilon"] * relevance / (n * p + a + b) ** 2))
    return out


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 50.0])
def test_ranking_follows_the_algorithm(estimator: str, epsilon: float) -> None:
    features, stats = world()
    ranker = EBRanker(estimator=estimator, epsilon=epsilon).fit(features, stats)
    ranking = ranker.rank(features, stats, k=7)
    expected = slow_scores(ranker, features, stats)
    order = sorted(range(len(stats)), key=lambda i: -sum(expected[i]))[:7]
    assert ranking.order.tolist() == order
    np.testing.assert_allclose(ranking.relevance, [expected[i][0] for i in order], rtol=1e-7)
    np.testing.assert_allclose(
        ranking.bonus, [expected[i][1] for i in order], rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(ranking.scores, ranking.relevance + ranking.bonus)
    assert len(ranking) == 7
    assert len(ranker.rank(features, stats)) == len(stats)
    assert len(ranker.rank(features, stats, k=999)) == len(stats)


@pytest.mark.parametrize("policy", ["ebrank", "ebrank:estimator=exact", "thompson"])
def test_interval_is_that_of_the_proper_posterior(policy: str) -> None:
    features, stats = world()
    ranker = EBRanker(policy).fit(features, stats)
    ranking = ranker.rank(features, stats, k=5)
    alpha = ranker.prior(features).a
    exposure = stats.sums(Examination()).exposure
    for (low, high), item in zip(ranking.interval, ranking.order, strict=True):
        misses = max(exposure[item] - stats.clicks[item], 0)
        posterior = distributions.beta(stats.clicks[item] + alpha[item], misses + 5.0)
        assert (low, high) == pytest.approx(posterior.interval(0.9))


def test_exploration_prefers_the_unseen_twin_of_a_known_item() -> None:
    twins = np.ones((2, 1), np.float32)
    stats = BehaviorStats.of(shown=[60, 0], clicks=[11, 0])  # a little better than 1/6
    assert EBRanker(epsilon=0.0).rank(twins, stats).order.tolist() == [0, 1]
    assert EBRanker(epsilon=20.0).rank(twins, stats).order.tolist() == [1, 0]
    assert EBRanker(bonus="none").rank(twins, stats).order.tolist() == [0, 1]


def test_explanation_adds_up() -> None:
    features, stats = world()
    ranker = EBRanker(epsilon=5.0).fit(features, stats)
    ranking = ranker.rank(features, stats, k=1)
    alpha = ranker.prior(features).a
    for item in range(len(stats)):
        why = ranking.explain(item)
        weight = stats.shown[item] / (stats.shown[item] + alpha[item] + 5.0)
        blend = weight * why.observed + (1 - weight) * why.prior
        assert why.relevance == pytest.approx(blend)
        assert why.bonus > 0
    top = ranking.explain(int(ranking.order[0]))
    assert top.relevance + top.bonus == pytest.approx(ranking.scores[0])
    assert str(top).startswith("prior 0.")
    with pytest.raises(ParameterError, match="0 to 29"):
        ranking.explain(30)


def test_before_any_training_every_alpha_is_one() -> None:
    features, _ = world()
    ranking = EBRanker(epsilon=0.0).rank(features, BehaviorStats.zeros(len(features)))
    np.testing.assert_allclose(ranking.relevance, 1 / 6)


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


@given(st.integers(0, 50), st.permutations(range(12)))
def test_order_of_the_candidates_does_not_matter(seed: int, shuffle: list[int]) -> None:
    features, stats = world(seed, items=12)
    ranker = EBRanker().fit(features, stats)
    keys = np.arange(12)
    chosen = np.array(shuffle)
    plain = ranker.rank(features, stats, tie_keys=keys).order
    shuffled = ranker.rank(features[chosen], stats[chosen], tie_keys=keys[chosen]).order
    assert chosen[shuffled].tolist() == plain.tolist()


def test_a_policy_that_draws_takes_new_draws_from_new_keys() -> None:
    features, stats = world()
    ranker = EBRanker("thompson").fit(features, stats)
    first, again = (ranker.rank(features, stats, tie_keys=np.arange(30)) for _ in range(2))
    other = ranker.rank(features, stats, tie_keys=np.arange(30) + 0.5)
    np.testing.assert_array_equal(first.scores, again.scores)
    assert first.order.tolist() != other.order.tolist()
    np.testing.assert_array_equal(  # the estimate does not draw
        first.candidates.relevance, other.candidates.relevance
    )
    seeded = {
        tuple(EBRanker("thompson", seed=seed).rank(features, stats).order.tolist())
        for seed in range(3)
    }
    assert len(seeded) == 3
    keys = np.arange(7, 37, dtype=np.uint64)
    given_keys = [
        ranker.rank_by_prior(ranker.prior(features), stats, tie_keys=ties, draw_keys=keys).scores
        for ties in (np.arange(30), np.arange(30) * 3)
    ]
    np.testing.assert_array_equal(given_keys[0], given_keys[1])


@pytest.mark.parametrize("part", ["prior", "behavior"])
def test_an_ablation_ranks_by_one_part_alone(part: str) -> None:
    features, stats = world()
    ranker = EBRanker(part=part, epsilon=50.0).fit(features, stats)
    ranking = ranker.rank(features, stats)
    alpha = ranker.prior(features).a
    p = 1 / np.log2(3)
    rate = stats.clicks / p / np.maximum(stats.shown, 1)
    expected = alpha / (alpha + 5.0) if part == "prior" else rate
    np.testing.assert_allclose(ranking.scores, expected[ranking.order], rtol=1e-7)
    np.testing.assert_array_equal(ranking.bonus, np.zeros(30))


def test_the_ranker_s_own_curve_debiases() -> None:
    features, _ = world()
    ranker = EBRanker(examination=Examination(curve=(1.0, 0.5)))
    stats = BehaviorStats.zeros(30)
    stats.record(ranker.rank(features, stats, k=2).order, [0, 1])
    item = int(np.flatnonzero(stats.clicks)[0])
    assert ranker.rank(features, stats).explain(item).observed == 2.0
    ranker.examination = Examination(curve=(1.0, 0.25))  # the same log, seen by another curve
    assert ranker.rank(features, stats).explain(item).observed == 4.0


def test_no_candidates_give_an_empty_list() -> None:
    for policy in ("ebrank", "thompson", "ebrank:estimator=exact"):
        ranking = EBRanker(policy).rank(np.zeros((0, 3), np.float32), BehaviorStats.zeros(0), k=5)
        assert ranking.order.tolist() == []
        assert ranking.interval.shape == (0, 2)


# --- fitting ------------------------------------------------------------------------------------


def test_fit_begins_anew_unless_it_is_to_start_warm() -> None:
    features, stats = world()
    ranker = EBRanker(ridge=0.01, max_iterations=1)
    first = ranker.fit(features, stats).state_
    assert first is not None
    again = ranker.fit(features, stats).state_
    assert again is not None
    np.testing.assert_array_equal(again["weights"], first["weights"])
    warm = ranker.fit(features, stats, warm_start=True).state_
    assert warm is not None
    assert not np.array_equal(warm["weights"], first["weights"])  # one step further


def test_validation_rows_are_handed_to_the_learner() -> None:
    features, stats = world(items=60)
    ranker = EBRanker().fit(features[:40], stats[:40], validation=(features[40:], stats[40:]))
    policy, curve = ranker.policy, ranker.examination
    state = policy.learner.fit(
        policy.rows(features[:40], stats[:40], curve),
        policy.rows(features[40:], stats[40:], curve),
        None,
    )
    assert ranker.state_ is not None
    for name, values in state.items():
        np.testing.assert_array_equal(ranker.state_[name], values)


def test_reported_loss_is_the_mean_marginal_likelihood() -> None:
    features, stats = world()
    ranker = EBRanker().fit(features, stats)
    alpha, exposure = ranker.prior(features).a, stats.sums(Examination()).exposure
    losses = [
        special.betaln(a, 5.0) - special.betaln(c + a, max(e - c, 0) + 5.0)
        for a, c, e, n in zip(alpha, stats.clicks, exposure, stats.shown, strict=True)
        if n > 0
    ]
    assert ranker.loss(features, stats) == pytest.approx(np.mean(losses))
    with pytest.raises(ParameterError, match="no item has been shown"):
        ranker.loss(features, BehaviorStats.zeros(30))


def test_any_number_of_threads_gives_the_same_bits() -> None:
    features, stats = world(items=20_000)
    scores = [
        EBRanker(threads=threads).fit(features, stats).rank(features, stats).scores
        for threads in (1, 3)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])


def test_features_are_scaled_on_the_way_to_the_prior() -> None:
    raw = np.array([[100.0], [300.0], [200.0]], dtype=np.float32)
    stats = BehaviorStats.zeros(3)
    state = {
        "weights": np.array([2.0]),
        "intercept": np.array([-1.0]),
        "ridge": np.array([1e-3]),
    }
    scaled, plain = EBRanker(scaling=Scaling("query")), EBRanker()
    scaled.state_ = plain.state_ = state
    np.testing.assert_allclose(scaled.prior(raw).a, np.exp([-1.0, 1.0, 0.0]))
    by_hand = plain.rank(np.array([[0.0], [1.0], [0.5]], dtype=np.float32), stats)
    ranking = scaled.rank(raw, stats)
    np.testing.assert_array_equal(ranking.scores, by_hand.scores)
    given_prior = scaled.rank_by_prior(scaled.prior(raw), stats)
    np.testing.assert_array_equal(ranking.order, given_prior.order)
    with pytest.raises(ParameterError, match="not one of these candidates"):
        scaled.rank_by_prior(scaled.prior(raw[:2]), stats)


# --- as an object -------------------------------------------------------------------------------


def test_policies_are_given_as_text_as_an_object_or_by_parameters() -> None:
    text = "ebrank:epsilon=5,estimator=exposure"
    for ranker in (
        EBRanker(text),
        EBRanker(parse(text)),
        EBRanker(estimator="exposure", epsilon=5.0),
        EBRanker("ebrank:estimator=exposure", epsilon=5.0),
    ):
        assert str(ranker.policy) == text
    assert EBRanker("thompson").policy.noisy


def test_repr_shows_what_differs_from_the_default() -> None:
    assert repr(EBRanker()) == "EBRanker('ebrank')"
    ranker = EBRanker(epsilon=5.0, examination=Examination(cutoff=5), seed=4)
    assert repr(ranker) == (
        "EBRanker('ebrank:epsilon=5', "
        "examination=Examination(severity=1.0, cutoff=5, curve=None), seed=4)"
    )
    ranking = EBRanker().rank(np.zeros((1, 1), np.float32), BehaviorStats.zeros(1))
    assert repr(ranking).startswith("Ranking(order=[0], scores=[0.")


@pytest.mark.parametrize("policy", ["ebrank:estimator=exposure", "thompson"])
def test_a_pickled_ranker_ranks_alike(policy: str) -> None:
    features, stats = world()
    ranker = EBRanker(policy).fit(features, stats)
    before = ranker.rank(features, stats)  # compiled by now
    again: EBRanker = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(again.rank(features, stats).scores, before.scores)
    assert repr(again) == repr(ranker)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ({"beta": -1.0}, "beta"),
        ({"epsilon": -0.5}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"estimator": "naive"}, "estimator"),
        ({"gamma": 1.0}, "no parameter 'gamma'"),
        ({"bonus": "none", "epsilon": 2.0}, "no parameter 'epsilon'"),
        ({"policy": "ebrnk"}, "did you mean ebrank"),
        ({"policy": 3}, "not a policy: 3"),
        ({"examination": 3}, "not an examination"),
        ({"scaling": "query"}, "not a scaling"),
        ({"seed": -1}, "seed"),
        ({"seed": True}, "seed"),
        ({"threads": 0}, "threads"),
    ],
)
def test_parameters_out_of_range_or_in_conflict_are_refused(bad: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        EBRanker(**bad)


def test_bad_calls_are_refused_in_words() -> None:
    features, stats = world()
    with pytest.raises(ParameterError, match="behavior of 29"):
        EBRanker().rank(features, stats[:29])
    with pytest.raises(ParameterError, match="behavior of 29"):
        EBRanker().fit(features, stats[:29])
    for k in (0, -1, 2.5, "3", True):
        with pytest.raises(ParameterError, match="k must"):
            EBRanker().rank(features, stats, k=k)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="item must"):
        EBRanker().rank(features, stats).explain(1.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="one key per candidate"):
        EBRanker().rank(features, stats, tie_keys=[1, 2])


def test_saved_and_loaded_rankers_agree_bit_for_bit(tmp_path: Path) -> None:
    features, stats = world()
    curve = Examination(severity=1.5, cutoff=5)
    ranker = EBRanker(epsilon=3.3, estimator="exposure", examination=curve, seed=4)
    ranker.fit(features, stats)
    ranker.save(tmp_path / "model.json")
    loaded = EBRanker.load(tmp_path / "model.json")
    assert repr(loaded) == repr(ranker)
    before, after = ranker.rank(features, stats), loaded.rank(features, stats)
    np.testing.assert_array_equal(after.order, before.order)
    np.testing.assert_array_equal(after.scores, before.scores)
    assert list(tmp_path.iterdir()) == [tmp_path / "model.json"]
