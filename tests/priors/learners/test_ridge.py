"""The ridge is chosen by validation rows, and only where they are sure."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank import BehaviorStats, EBRanker
from ebrank.priors.base import State
from ebrank.priors.learners import linear, minimization
from ebrank.priors.rows import Rows
from ebrank.typing import Features, Floats
from tests.priors.made_up import fitted, made_up, rows_of, theta_of

Data = tuple[Features, BehaviorStats]

FEATURES = 30
NOTHING = np.zeros(FEATURES)
"""Users who care for none of the features."""
MUCH = 3.0 * np.random.default_rng(5).normal(size=FEATURES) / np.sqrt(FEATURES)
"""Users who care a lot."""


def ridge_of(state: State) -> float:
    return float(state["ridge"][0])


def unseen_loss(state: State, data: Data) -> float:
    return float(minimization.row_losses(rows_of(*data), theta_of(state)[None]).mean())


def noise(seed: int, rows: int = 150) -> tuple[Data, Data]:
    """Return few rows of users who do not care, and more of them to validate on."""
    return (
        made_up(rows, FEATURES, seed, NOTHING),
        made_up(3000, FEATURES, seed + 100, NOTHING),
    )


def signal(rows: int, seed: int) -> Data:
    """Return rows of users who care a lot for features of a small scale: weights must be large."""
    features, stats = made_up(rows, FEATURES, seed, MUCH)
    return 0.03 * features, stats


# --- which ridge ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_large_ridge_where_features_are_noise(seed: int) -> None:
    train, unseen = noise(seed)
    state = fitted(*train, validation=unseen)
    assert ridge_of(state) >= 1e-1
    first = fitted(*train, validation=unseen, ridge=linear.FIRST_RIDGE)
    fresh = made_up(20_000, FEATURES, seed + 999, NOTHING)
    assert unseen_loss(state, fresh) < unseen_loss(first, fresh) - 1e-3


@pytest.mark.parametrize("seed", range(2))
def test_a_small_ridge_where_features_say_a_lot(seed: int) -> None:
    train, unseen = signal(10_000, seed), signal(3000, seed + 100)
    state = fitted(*train, validation=unseen)
    assert ridge_of(state) <= 1e-5
    first = fitted(*train, validation=unseen, ridge=linear.FIRST_RIDGE)
    fresh = signal(20_000, seed + 999)
    assert unseen_loss(state, fresh) < unseen_loss(first, fresh) - 1e-3
    alone = fitted(*train)  # every fifth row held out
    assert ridge_of(alone) <= 1e-4


@pytest.mark.parametrize("ridge", linear.RIDGES)
def test_a_choice_from_any_start_is_as_good_as_any_of_the_grid(ridge: float) -> None:
    train, unseen = noise(3)
    start = {**fitted(*train, ridge=ridge), "ridge": np.array([ridge])}
    chosen = fitted(*train, validation=unseen, start=start)
    losses = [unseen_loss(fitted(*train, ridge=other), unseen) for other in linear.RIDGES]
    assert unseen_loss(chosen, unseen) < min(losses) + 0.01


def test_rows_that_cannot_tell_leave_the_ridge_alone() -> None:
    train = made_up(2000, 4, seed=1)
    for count in (5, 100):
        unseen = made_up(count, 4, seed=2, weights=np.zeros(4))
        assert ridge_of(fitted(*train, validation=unseen)) == linear.FIRST_RIDGE
    start = {**fitted(*train), "ridge": np.array([1e-2])}
    assert ridge_of(fitted(*train, validation=made_up(40, 4, seed=3), start=start)) == 1e-2


def test_a_refit_begins_where_the_last_one_ended() -> None:
    train, unseen = noise(1)
    first = fitted(*train, validation=unseen)
    again = fitted(*train, validation=unseen, start=first)
    assert ridge_of(again) == ridge_of(first) > linear.FIRST_RIDGE
    np.testing.assert_allclose(theta_of(again), theta_of(first), atol=1e-2)


# --- from what -----------------------------------------------------------------------------------


def test_a_given_number_switches_the_choice_off() -> None:
    train, unseen = noise(2)
    for ridge in (0.0, 1e-6, 3e-4):
        state = fitted(*train, validation=unseen, ridge=ridge)
        assert ridge_of(state) == ridge
        warm = fitted(*train, validation=unseen, start=fitted(*train), ridge=ridge)
        assert ridge_of(warm) == ridge


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_it_is_the_same_every_time_for_any_number_of_threads(threads: int) -> None:
    train, unseen = noise(0, rows=9000)
    first = fitted(*train, validation=unseen, threads=1)
    again = fitted(*train, validation=unseen, threads=threads)
    assert {name: array.tobytes() for name, array in first.items()} == {
        name: array.tobytes() for name, array in again.items()
    }


def test_only_validation_rows_decide() -> None:
    """Rows that are in neither part, as a lab's test rows, may be anything at all."""
    train, unseen = noise(2)
    both = np.concatenate([train[0], unseen[0]])
    rng = np.random.default_rng(0)
    states = []
    for _ in range(3):
        other = rng.random((500, FEATURES), dtype=np.float32)
        features = np.concatenate([both, other])
        shown = rng.integers(0, 20, 500)
        rest = BehaviorStats.of(shown, rng.binomial(shown, 0.5)).widened(5)
        counts = np.concatenate([train[1].counts, unseen[1].counts, rest.counts])
        stats = BehaviorStats(counts)
        n, m = len(train[0]), len(both)
        states.append(fitted(features[:n], stats[:n], validation=(features[n:m], stats[n:m])))
    for state in states[1:]:
        np.testing.assert_array_equal(theta_of(state), theta_of(states[0]))
        assert ridge_of(state) == ridge_of(states[0])


def test_what_validation_says_is_never_learned_from() -> None:
    train, unseen = noise(2)
    liking = made_up(3000, FEATURES, 102, MUCH)
    chosen = [fitted(*train, validation=data) for data in (unseen, liking)]
    for state in chosen:  # whatever the choice, the weights are those of the training rows
        plain = fitted(*train, ridge=ridge_of(state), tolerance=1e-7)
        np.testing.assert_allclose(theta_of(state), theta_of(plain), atol=2e-2)


class Spy:
    """Notes which rows are fitted, and how often some are only looked at after a fit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fits: list[tuple[Rows, Rows | None]] = []
        self.looks = 0
        self.looked_at: list[Rows] = []
        minimize, row_losses = minimization.minimize, minimization.row_losses

        def fit(rows: Rows, validation: Rows | None, *rest: object, **options: object) -> object:
            self.fits.append((rows, validation))
            outcome = minimize(rows, validation, *rest, **options)  # type: ignore[arg-type]
            self.looks = 0
            return outcome

        def look(rows: Rows, thetas: Floats) -> Floats:
            self.looks += 1
            self.looked_at.append(rows)
            return row_losses(rows, thetas)

        monkeypatch.setattr(minimization, "minimize", fit)
        monkeypatch.setattr(minimization, "row_losses", look)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


def test_without_validation_every_fifth_row_is_held_out(spy: Spy) -> None:
    features, stats = made_up(1000, 3, seed=3, mean=1.0)
    fitted(features, stats)
    included = rows_of(features, stats).included
    (first, _), *_, (last, _) = spy.fits
    held_out = np.flatnonzero(included)[4::5]
    assert {tuple(np.flatnonzero(rows.included)) for rows in spy.looked_at} == {tuple(held_out)}
    kept = np.setdiff1d(np.flatnonzero(included), held_out)
    assert np.flatnonzero(first.included).tolist() == kept.tolist()
    assert last.included.tolist() == included.tolist()  # in the end, it learns from all


def test_too_few_rows_to_hold_out_are_all_learned_from(spy: Spy) -> None:
    features, stats = made_up(4, 2, seed=3, mean=9.0)
    fitted(features, stats)
    assert len(spy.fits) == 1
    assert spy.fits[0][0].count == 4


def test_a_warm_start_without_validation_keeps_its_ridge(spy: Spy) -> None:
    features, stats = made_up(1000, 3, seed=3)
    start = {**fitted(features, stats), "ridge": np.array([3e-2])}
    spy.fits.clear()
    assert ridge_of(fitted(features, stats, start=start)) == 3e-2
    assert len(spy.fits) == 1


def test_a_refit_that_changes_nothing_looks_once_at_the_validation_rows(spy: Spy) -> None:
    liked = np.linspace(-1, 1, 5)
    train, unseen = made_up(5000, 5, 1, liked), made_up(1000, 5, 2, liked)
    start = fitted(*train, validation=unseen)
    assert ridge_of(start) == linear.FIRST_RIDGE
    spy.fits.clear()
    fitted(*train, validation=unseen, start=start)
    assert [watched for _, watched in spy.fits] == [None]
    assert spy.looks == 1  # under its own ridge and both neighbors at once


def test_the_estimator_warm_starts_when_told() -> None:
    train, unseen = noise(1)
    ranker = EBRanker().fit(*train, validation=unseen)
    assert ranker.state_ is not None
    first = ridge_of(ranker.state_)
    ranker.fit(*train, warm_start=True)
    assert ridge_of(ranker.state_) == first
