"""The ridge is chosen by held-out rows: validation rows, or queries in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ebrank import BehaviorStats
from ebrank.model.policy.policies import make
from ebrank.model.prior.learners import linear, minimization
from ebrank.model.prior.rows import Rows
from ebrank.typing import Features, Floats, State
from tests.model.prior.made_up import clicked, fitted, made_up, rows_of, theta_of

Data = tuple[Features, BehaviorStats]

FEATURES = 30
NOTHING = np.zeros(FEATURES)
"""Users who care for none of the features."""
MUCH = 3.0 * np.random.default_rng(5).normal(size=FEATURES) / np.sqrt(FEATURES)
"""Users who care a lot."""


def ridge_of(state: State) -> float:
    return float(state["ridge"][0])


def unseen_loss(state: State, data: Data) -> float:
    return float(minimization.row_losses(rows_of(*data), theta_of(state)).mean())


def noise(rows: int, seed: int) -> Data:
    """Return rows of users who do not care."""
    return made_up(rows, FEATURES, seed, NOTHING)


def little_noise(seed: int) -> tuple[Data, Data]:
    """Return few rows, and more of them to validate on."""
    return noise(150, seed), noise(3000, seed + 100)


def signal(rows: int, seed: int) -> Data:
    """Return rows of users who care a lot for features of a small scale: weights must be large."""
    features, stats = made_up(rows, FEATURES, seed, MUCH)
    return 0.03 * features, stats


# --- which ridge ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("users", "rows", "seed"),
    [*((noise, 150, seed) for seed in range(4)), *((signal, 10_000, seed) for seed in range(2))],
)
def test_features_that_are_noise_get_a_large_ridge_and_those_that_say_a_lot_a_small_one(
    users: Callable[[int, int], Data], rows: int, seed: int
) -> None:
    train, unseen, fresh = users(rows, seed), users(3000, seed + 100), users(20_000, seed + 999)
    state = fitted(*train, validation=unseen)
    assert ridge_of(state) >= 1e-1 if users is noise else ridge_of(state) <= 1e-5
    first = fitted(*train, validation=unseen, ridge=linear.FIRST_RIDGE)
    assert unseen_loss(state, fresh) < unseen_loss(first, fresh) - 1e-3
    if users is signal:  # also if a fifth of the rows is held out at a time
        assert ridge_of(fitted(*train)) <= 1e-4


@pytest.mark.parametrize("ridge", linear.RIDGES)
def test_a_choice_from_any_start_is_as_good_as_any_of_the_grid(ridge: float) -> None:
    train, unseen = little_noise(3)
    start = {**fitted(*train, ridge=ridge), "ridge": np.array([ridge])}
    chosen = fitted(*train, validation=unseen, start=start)
    losses = [unseen_loss(fitted(*train, ridge=other), unseen) for other in linear.RIDGES]
    assert unseen_loss(chosen, unseen) < min(losses) + 0.01


def test_rows_that_cannot_tell_leave_the_ridge_alone() -> None:
    train = made_up(2000, 4, seed=1)
    unseen = made_up(25, 4, seed=2, weights=np.zeros(4))
    assert ridge_of(fitted(*train, validation=unseen)) == linear.FIRST_RIDGE
    start = {**fitted(*train), "ridge": np.array([1e-2])}
    assert ridge_of(fitted(*train, validation=unseen, start=start)) == 1e-2


# --- from what -----------------------------------------------------------------------------------


def test_a_given_number_switches_the_choice_off() -> None:
    train, unseen = little_noise(2)
    for ridge in (0.0, 1e-6, 3e-4):
        state = fitted(*train, validation=unseen, ridge=ridge)
        assert ridge_of(state) == ridge
        warm = fitted(*train, validation=unseen, start=fitted(*train), ridge=ridge)
        assert ridge_of(warm) == ridge


class Spy:
    """Notes which rows are fitted, and how often some are only looked at after a fit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fits: list[tuple[Rows, Rows | None]] = []
        self.looked_at: list[Rows] = []
        minimize, row_losses = minimization.minimize, minimization.row_losses

        def fit(rows: Rows, validation: Rows | None, *rest: object, **options: object) -> object:
            self.fits.append((rows, validation))
            return minimize(rows, validation, *rest, **options)  # type: ignore[arg-type]

        def look(rows: Rows, thetas: Floats) -> Floats:
            self.looked_at.append(rows)
            return row_losses(rows, thetas)

        monkeypatch.setattr(minimization, "minimize", fit)
        monkeypatch.setattr(minimization, "row_losses", look)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


@pytest.mark.parametrize("size", [1, 4, 200])
def test_without_validation_each_fifth_of_the_queries_is_held_out(spy: Spy, size: int) -> None:
    """Whole queries, unless there are few; each row once, and in the end it learns from all."""
    features, stats = made_up(1000, 3, seed=3, mean=1.0)
    queries = np.arange(1000) // size
    rows = replace(rows_of(features, stats), groups=queries)
    make().learner.fit(rows, None, None)
    (first, _), *apart = spy.fits[:6]
    np.testing.assert_array_equal(first.included, rows.included)
    times = np.zeros(1000, np.int64)
    for fit, _ in apart:
        held_out = rows.included & ~fit.included
        times[held_out] += 1
        whole = not set(queries[held_out]) & set(queries[fit.included])
        assert whole == (size < 200)
        assert 0.1 < held_out.sum() / rows.count < 0.3
    np.testing.assert_array_equal(times, rows.included)
    assert {tuple(np.flatnonzero(one.included)) for one in spy.looked_at} == {
        tuple(np.flatnonzero(rows.included & ~fit.included)) for fit, _ in apart
    }


def test_queries_choose_a_larger_ridge_than_their_rows_would() -> None:
    """Features that only name a query say nothing of others; rows held out alone cannot tell."""
    rng = np.random.default_rng(4)
    queries, each = 60, 10
    names = np.repeat(rng.random((queries, 40), dtype=np.float32), each, axis=0)
    ease = np.repeat(rng.uniform(0.05, 0.5, queries), each)
    stats = clicked(rng, ease, mean=20.0)
    rows = rows_of(names, stats)
    of = {
        size: ridge_of(
            make().learner.fit(replace(rows, groups=np.arange(len(ease)) // size), None, None)
        )
        for size in (1, each)
    }
    assert of[each] >= 10 * of[1]


def test_no_groups_no_choice(spy: Spy) -> None:
    """As in the first turns of a fit, when the shape of the prior is not known yet."""
    features, stats = made_up(1000, 3, seed=3)
    start = {**fitted(features, stats), "ridge": np.array([3e-2])}
    spy.fits.clear()
    assert ridge_of(make().learner.fit(rows_of(features, stats), None, start)) == 3e-2
    assert len(spy.fits) == 1
