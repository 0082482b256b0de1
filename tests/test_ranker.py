from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ebrank.behavior import Estimator
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as distributions
from sklearn.base import clone

from ebrank import BehaviorStats, EBRanker, Examination, LinearPrior, ParameterError
from ebrank.features import Scaling

Features = npt.NDArray[np.float32]


def world(seed: int = 0, items: int = 30) -> tuple[Features, BehaviorStats]:
    """Return candidates of which some have been shown, and liked the more the larger feature 0."""
    rng = np.random.default_rng(seed)
    features = rng.random((items, 3), dtype=np.float32)
    shown = rng.integers(0, 20, items)
    p = 0.63  # as if always at rank 2
    clicks = rng.binomial(shown, p * (0.1 + 0.6 * features[:, 0]))
    return features, BehaviorStats.from_arrays(
        {
            "shown": shown,
            "clicks": clicks,
            "weighted_clicks": clicks / p,
            "exposure": shown * p,
        }
    )


def slow_scores(
    ranker: EBRanker, features: Features, stats: BehaviorStats
) -> list[tuple[float, float]]:
    """Return (R̂, ε·MC) of each item as the paper's Algorithm 1 spells it, in plain Python."""
    assert ranker.prior_ is not None
    alphas, betas = ranker.prior_.predict(features)
    out = []
    for i in range(len(stats)):
        a, b = float(alphas[i]), float(betas[i])
        c, n, big_c, e = (
            float(stats.clicks[i]),
            float(stats.shown[i]),
            float(stats.weighted_clicks[i]),
            float(stats.exposure[i]),
        )
        hits, trials = (big_c, n) if ranker.estimator == "ips" else (c, e)
        relevance = (hits + a) / (trials + a + b)
        out.append((relevance, ranker.epsilon * relevance / (e + a + b) ** 2))
    return out


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 50.0])
def test_ranking_follows_the_algorithm(estimator: Estimator, epsilon: float) -> None:
    features, stats = world()
    ranker = EBRanker(estimator=estimator, epsilon=epsilon).fit(features, stats)
    ranking = ranker.rank(features, stats, k=7)
    expected = slow_scores(ranker, features, stats)
    order = sorted(range(len(stats)), key=lambda i: -sum(expected[i]))[:7]
    assert ranking.order.tolist() == order
    np.testing.assert_allclose(ranking.relevance, [expected[i][0] for i in order])
    np.testing.assert_allclose(ranking.bonus, [expected[i][1] for i in order])
    np.testing.assert_allclose(ranking.scores, ranking.relevance + ranking.bonus)
    assert len(ranking) == 7
    assert len(ranker.rank(features, stats)) == len(stats)
    assert len(ranker.rank(features, stats, k=999)) == len(stats)


def test_interval_is_that_of_the_proper_posterior() -> None:
    features, stats = world()
    ranker = EBRanker().fit(features, stats)
    ranking = ranker.rank(features, stats, k=5)
    assert ranker.prior_ is not None
    alpha, beta = ranker.prior_.predict(features)
    for (low, high), item in zip(ranking.interval, ranking.order, strict=True):
        misses = max(stats.exposure[item] - stats.clicks[item], 0)
        posterior = distributions.beta(stats.clicks[item] + alpha[item], misses + beta[item])
        assert (low, high) == pytest.approx(posterior.interval(0.9))


def test_exploration_prefers_the_unseen_twin_of_a_known_item() -> None:
    twins = np.ones((2, 1), np.float32)
    stats = BehaviorStats.from_arrays(  # item 0 does a little better than its prior of 1/6
        {"shown": [60, 0], "clicks": [11, 0], "weighted_clicks": [11, 0], "exposure": [60, 0]}
    )
    assert EBRanker(epsilon=0.0).rank(twins, stats).order.tolist() == [0, 1]
    assert EBRanker(epsilon=20.0).rank(twins, stats).order.tolist() == [1, 0]


def test_explanation_adds_up() -> None:
    features, stats = world()
    ranker = EBRanker(epsilon=5.0).fit(features, stats)
    ranking = ranker.rank(features, stats, k=1)
    assert ranker.prior_ is not None
    alpha, beta = ranker.prior_.predict(features)
    for item in range(len(stats)):
        why = ranking.explain(item)
        weight = stats.shown[item] / (stats.shown[item] + alpha[item] + beta[item])
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


def test_record_debiases_by_the_ranker_s_own_curve() -> None:
    features, stats = world()
    ranker = EBRanker(examination=Examination(curve=(1.0, 0.5)))
    fresh = BehaviorStats.zeros(len(stats))
    ranking = ranker.rank(features, fresh, k=2)
    ranker.record(fresh, ranking, [0, 1])
    assert fresh.weighted_clicks[ranking.order[1]] == 2.0
    ranker.record(fresh, [4], [True])
    assert fresh.clicks[4] >= 1


def test_no_candidates_give_an_empty_list() -> None:
    ranking = EBRanker().rank(np.zeros((0, 3), np.float32), BehaviorStats.zeros(0), k=5)
    assert ranking.order.tolist() == []
    assert ranking.interval.shape == (0, 2)


def test_fit_leaves_the_given_prior_alone_and_warm_starts_when_told() -> None:
    features, stats = world()
    prior = LinearPrior(warm_start=True)
    ranker = EBRanker(prior).fit(features, stats)
    assert prior.weights_ is None
    fitted = ranker.prior_
    assert ranker.fit(features, stats).prior_ is fitted
    assert EBRanker().fit(features, stats).prior_ is not None


def test_it_behaves_like_a_scikit_learn_estimator() -> None:
    features, stats = world()
    ranker = EBRanker(epsilon=20.0, estimator="exposure")
    assert repr(ranker) == "EBRanker(epsilon=20.0, estimator='exposure')"
    assert clone(ranker).get_params() == ranker.get_params()
    ranker.fit(features, stats)
    again = pickle.loads(pickle.dumps(ranker))
    before = ranker.rank(features, stats)
    np.testing.assert_array_equal(again.rank(features, stats).scores, before.scores)
    ranker.set_params(epsilon=0.0)
    assert ranker.prior_ is not None
    ranker.set_params(beta=2.0)
    assert ranker.prior_ is None


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        ({"beta": -1.0}, "beta"),
        ({"epsilon": -0.5}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"estimator": "naive"}, "estimator"),
        ({"prior": LinearPrior(2.0)}, "beta"),
        ({"prior": LinearPrior}, "no prior"),
        ({"prior": LinearPrior(estimator="exposure")}, "estimator"),
    ],
)
def test_parameters_out_of_range_or_in_conflict_are_refused(bad: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        EBRanker(**bad)


def test_bad_calls_are_refused_in_words() -> None:
    features, stats = world()
    with pytest.raises(ParameterError, match="behavior of 29"):
        EBRanker().rank(features, stats[:29])
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
    assert loaded.get_params() == ranker.get_params()
    before, after = ranker.rank(features, stats), loaded.rank(features, stats)
    np.testing.assert_array_equal(after.order, before.order)
    np.testing.assert_array_equal(after.scores, before.scores)
    assert list(tmp_path.iterdir()) == [tmp_path / "model.json"]


def test_features_are_scaled_on_the_way_to_the_prior() -> None:
    raw = np.array([[100.0], [300.0], [200.0]], dtype=np.float32)
    stats = BehaviorStats.zeros(3)
    prior = LinearPrior.from_state({"parameters": {}, "weights": [2.0], "intercept": -1.0})
    scaled = EBRanker(prior, scaling=Scaling("query"))
    np.testing.assert_allclose(scaled.predict_prior(raw).alpha, np.exp([-1.0, 1.0, 0.0]))
    by_hand = EBRanker(prior).rank(np.array([[0.0], [1.0], [0.5]], dtype=np.float32), stats)
    ranking = scaled.rank(raw, stats)
    np.testing.assert_array_equal(ranking.scores, by_hand.scores)
    given_prior = scaled.rank_by_prior(scaled.predict_prior(raw), stats)
    np.testing.assert_array_equal(ranking.order, given_prior.order)
    with pytest.raises(ParameterError, match="not one of these candidates"):
        scaled.rank_by_prior(scaled.predict_prior(raw[:2]), stats)
    with pytest.raises(ParameterError, match="no scaling"):
        EBRanker(scaling="query")  # type: ignore[arg-type]
