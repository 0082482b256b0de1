"""What each ranker sorts by, spelled out from its paper, beside what the engine computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from ebrank.evidence import BehaviorStats, Examination
from ebrank.kernels import streams
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import ScoreModel, Trial
from ebrank.lab.rankers.pbmucb import BOUND, UNSEEN
from ebrank.model.formula import Score
from ebrank.model.prior import ItemPrior
from ebrank.model.scoring import scores
from ebrank.typing import Floats
from tests.lab.rankers.test_least_squares import dense_solution

MakeTrial = Callable[..., Trial]
Serve = Callable[[Trial, int], None]
KEYS = [np.uint64(3), np.uint64(2**63 + 11)]
COUNTERFACTUAL = ["cftopk", "cfrandomk", "cfepsilon", "prior", "ucbrank"]


def learned(text: str, trial: Trial) -> ScoreModel:
    return registry.parse(text).learner(trial).update()


def values(score: Score, model: ScoreModel, trial: Trial, key: np.uint64 = KEYS[0]) -> Floats:
    """Return the score of every row; the plain formula and the compiled one must agree."""
    numbers = {"a": model.a, "b": np.broadcast_to(model.b, model.a.shape)}
    numbers |= trial.sums()._asdict()
    parameters = dict(zip(score.formula.parameters, score.parameters.tolist(), strict=False))
    plain = [
        float(
            score.formula(key=key, **parameters, **{name: own[i] for name, own in numbers.items()})
        )
        for i in range(len(model.a))
    ]
    keys = np.full(len(plain), key)
    compiled = scores(score, ItemPrior(model.a, model.b), trial.stats, trial.examination, keys)
    np.testing.assert_array_equal(compiled, plain)
    return compiled


# --- the formulas --------------------------------------------------------------------------------


def click_rate(trial: Trial, behavior: str, unseen: Floats | float) -> Floats:
    """x^b, C/n or c/E, and something else for what nobody has seen."""
    s = trial.sums()
    hits, trials = (s.weighted_clicks, s.shown) if behavior == "ips" else (s.clicks, s.exposure)
    return np.where(s.shown > 0, hits / np.maximum(trials, 1e-9), unseen)


def on_train(trial: Trial) -> Floats:
    return np.repeat(trial.dataset.query_splits == 0, trial.dataset.candidates)


def features_score(trial: Trial) -> Floats:
    """w·x + w_0, the features' model alone."""
    *w, intercept = dense_solution(trial, "exposure", concatenate=False)
    return np.asarray(trial.dataset.features @ w + intercept)


def concatenated(trial: Trial, behavior: str, unseen: Floats | float) -> Floats:
    """w·x + w_0 + w_b·x^b."""
    *w, w_b, intercept = dense_solution(trial, behavior, concatenate=True)
    return np.asarray(
        trial.dataset.features @ w + intercept + w_b * click_rate(trial, behavior, unseen)
    )


def cftopk_score(trial: Trial, behavior: str, default: str) -> Floats:
    rates = click_rate(trial, behavior, np.nan)
    unseen = float(np.nanmean(rates[on_train(trial)])) if default == "mean" else 0.0
    return concatenated(trial, behavior, unseen)


def prior_score(trial: Trial, behavior: str) -> Floats:
    return concatenated(trial, behavior, features_score(trial))


def by_ucbrank(trial: Trial, behavior: str, shown: str, epsilon: float) -> tuple[Floats, Floats]:
    s = trial.sums()
    assumed = s.clicks > 0 if shown == "clicked" else s.shown > 0
    relevance = np.where(assumed, click_rate(trial, behavior, 0.0), features_score(trial))
    return relevance + epsilon / np.maximum(np.sqrt(s.shown), 0.001), relevance


def smoothed_rate(trial: Trial, strength: float) -> Floats:
    shown, clicks, train = trial.stats.shown, trial.stats.clicks, on_train(trial)
    mean = clicks[train].sum() / shown[train].sum()
    assert mean != clicks.sum() / shown.sum()
    return np.asarray((clicks + strength * mean) / (shown + strength))


def by_pbm_bound(trial: Trial, delta: float) -> tuple[Floats, Floats]:
    """S/Ñ + √(N/Ñ)·√(δ log t/(2Ñ)), t being the lists of the query; the unseen come first."""
    s, data = trial.sums(), trial.dataset
    first_ranks = np.add.reduceat(trial.stats.counts[:, 0, 0], data.query_pointers[:-1])
    log_t = np.repeat(np.log(np.maximum(first_ranks, 1)), data.candidates)
    seen = np.maximum(s.exposure, 1e-9)
    width = np.sqrt(s.shown / seen) * np.sqrt(delta * log_t / (2 * seen))
    rate = click_rate(trial, "exposure", 0.0)
    return np.where(s.shown > 0, rate + width, UNSEEN), rate


def by_algorithm_2(
    trial: Trial, alpha: float, ridge: float, item_ridge: float
) -> tuple[Floats, Floats]:
    """Return bounds and means of all rows, matrix by matrix as in the paper of LinUCB.

    Impressions are added one after the other. x is the arm's own feature, 1; with the identity
    replaced by a ridge, lines are those of Algorithm 2. Arms of other queries leave A0 alone.
    """
    data, train = trial.dataset, on_train(trial)
    z = np.column_stack([data.features.astype(np.float64), np.ones(data.n_rows)])
    p = trial.examination(np.arange(1, trial.stats.slots + 1))
    x, k = np.ones(1), z.shape[1]
    A0, b0 = ridge * np.eye(k), np.zeros(k)
    arms = []
    for row in range(data.n_rows):
        A, B, b = item_ridge * np.eye(1), np.zeros((1, k)), np.zeros(1)
        for rank in range(trial.stats.slots):
            shown, clicked = trial.stats.counts[row, :, rank]
            for impression in range(shown):
                reward = (impression < clicked) / p[rank]
                inverse = np.linalg.inv(A)
                if train[row]:
                    A0 += B.T @ inverse @ B
                    b0 += B.T @ inverse @ b
                A += p[rank] * np.outer(x, x)
                B += p[rank] * np.outer(x, z[row])
                b += p[rank] * reward * x
                inverse = np.linalg.inv(A)
                if train[row]:
                    A0 += p[rank] * np.outer(z[row], z[row]) - B.T @ inverse @ B
                    b0 += p[rank] * reward * z[row] - B.T @ inverse @ b
        arms.append((A, B, b))
    shared = np.linalg.inv(A0)
    beta = shared @ b0
    means, bounds = [], []
    for own, (A, B, b) in zip(z, arms, strict=True):
        inverse = np.linalg.inv(A)
        theta = inverse @ (b - B @ beta)
        s = (
            own @ shared @ own
            - 2 * own @ shared @ B.T @ inverse @ x
            + x @ inverse @ x
            + x @ inverse @ B @ shared @ B.T @ inverse @ x
        )
        means.append(own @ beta + x @ theta)
        bounds.append(means[-1] + alpha * np.sqrt(s))
    return np.array(bounds), np.array(means)


Expected = Callable[[Trial], tuple[Floats, Floats]]
"""The scores that a ranker serves by, and those it is measured by."""


def by(scores: Callable[[Trial], Floats]) -> Expected:
    return lambda trial: (scores(trial), scores(trial))


def cases() -> Iterator[tuple[str, Expected]]:
    yield "bm25", by(lambda trial: trial.dataset.baseline.astype(np.float64))
    yield "oracle", by(lambda trial: trial.relevance)
    yield "cftopk", by(features_score)
    yield "smoothedctr:strength=0.5", by(partial(smoothed_rate, strength=0.5))
    yield "pbmucb:delta=1.5", partial(by_pbm_bound, delta=1.5)
    for alpha, ridge, own in ((0.0, 1.0, 1.0), (0.7, 0.1, 4.0)):
        text = f"hybridlinucb:alpha={alpha},ridge={ridge},item_ridge={own}"
        yield text, partial(by_algorithm_2, alpha=alpha, ridge=ridge, item_ridge=own)
    for kind in ("exposure", "ips"):
        for default in ("zero", "mean"):
            text = f"cftopk:features=concate,behavior={kind},default={default}"
            yield text, by(partial(cftopk_score, behavior=kind, default=default))
        yield f"prior:behavior={kind}", by(partial(prior_score, behavior=kind))
        for shown in ("shown", "clicked"):
            text = f"ucbrank:behavior={kind},shown={shown},epsilon=0.3"
            yield text, partial(by_ucbrank, behavior=kind, shown=shown, epsilon=0.3)


@pytest.mark.parametrize(
    ("text", "expected"), [pytest.param(*case, id=case[0]) for case in cases()]
)
def test_scores_are_those_of_the_paper(
    make_trial: MakeTrial, serve: Serve, text: str, expected: Expected
) -> None:
    """After the first lists and after more: what is kept from one update to the next is right."""
    trial = make_trial(1)
    learner = registry.parse(text).learner(trial)
    learner.update()
    for seed in range(2):
        serve(trial, seed)
        model = learner.update()
        situations = set(zip(trial.stats.shown > 0, trial.stats.clicks > 0, strict=True))
        assert situations == {(False, False), (True, False), (True, True)}
        served, offline = expected(trial)
        np.testing.assert_allclose(values(model.serve, model, trial), served, rtol=2e-6, atol=2e-7)
        got = values(model.offline, model, trial)
        np.testing.assert_allclose(got, offline, rtol=2e-6, atol=2e-7)
        assert not model.noisy


@pytest.mark.parametrize("features", ["none", "concate"])
@pytest.mark.parametrize("behavior", ["exposure", "ips"])
@pytest.mark.parametrize(
    ("ranker", "kept", "noise"),
    [("cfrandomk", 0.0, 1.0), ("cfepsilon:noise=0.25", 1.0, 0.25), ("cfepsilon:noise=0", 1.0, 0.0)],
)
def test_noise_is_added_to_what_is_served_and_not_to_what_is_measured(
    make_trial: MakeTrial,
    serve: Serve,
    ranker: str,
    kept: float,
    noise: float,
    behavior: str,
    features: str,
) -> None:
    trial = make_trial(5)
    serve(trial, 0)
    setting = f"features={features},behavior={behavior}"
    name, _, own = ranker.partition(":")
    model = learned(f"{name}:{setting},{own}", trial)
    greedy = learned(f"cftopk:{setting}", trial)
    assert model.noisy
    assert greedy.serve is greedy.offline
    plain = values(greedy.serve, greedy, trial)
    np.testing.assert_array_equal(values(model.offline, model, trial), plain)
    for key in KEYS:
        served = values(model.serve, model, trial, key)
        np.testing.assert_allclose(served, kept * plain + noise * streams.uniform(key))


def test_without_behavior_cold_items_are_ranked_by_features(
    make_trial: MakeTrial, serve: Serve
) -> None:
    trial = make_trial(2)
    serve(trial, 0)
    expected = features_score(trial)
    nobody = replace(trial, stats=BehaviorStats.zeros(len(expected), slots=trial.stats.slots))
    for text in ("cftopk", "ucbrank", "prior"):
        model = learned(text, trial)
        cold = values(model.cold or model.offline, model, nobody)
        np.testing.assert_allclose(cold, expected, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("name", COUNTERFACTUAL)
def test_before_anything_was_shown_scores_are_equal(make_trial: MakeTrial, name: str) -> None:
    model = learned(name, make_trial(7))
    assert model.weights is not None
    for numbers in (model.a, model.b, model.weights):
        assert np.all(numbers == 0.0)


def test_an_item_nobody_has_seen_is_above_all_others() -> None:
    """Even where users hardly ever look."""
    stats = BehaviorStats.of(np.array([[1], [10**9]]), np.array([[1], [10**9]]))
    prior = ItemPrior(np.zeros(2), np.full(2, 50.0))
    rare = Examination(curve=(0.0001,))
    assert np.all(scores(BOUND.bind(delta=100.0), prior, stats, rare) < UNSEEN)
    assert math.isfinite(UNSEEN)
