"""Learning how far down users look: what a log can tell, and what it cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from ebrank import BehaviorStats, EBRanker, Examination
from ebrank.evidence import CLICKS, Valuation
from ebrank.evidence.slots import SLOTS
from ebrank.evidence.valuation import SMALLEST_P, UNIT
from ebrank.lab.simulation.users import PositionBased
from ebrank.model.policy.policies import parse
from ebrank.model.prior import fitting
from ebrank.model.prior.base import Learner
from ebrank.model.prior.rows import Rows
from ebrank.typing import Features, Floats, State
from tests.evidence.logs import SHOP, curves
from tests.model.prior.made_up import mean_loss

RANKS = 5


class Log(NamedTuple):
    """A synthetic log, and how far down its users really look."""

    features: Features
    behavior: BehaviorStats
    p: Floats

    def fit(self, ranker: EBRanker) -> State:
        """Return what a ranker learns from it, from where its last fit ended."""
        ranker.fit(self.features, self.behavior, warm_start=True)
        assert ranker.state_ is not None
        return ranker.state_

    def loss(self, ranker: EBRanker) -> float:
        return mean_loss(ranker, self.features, self.behavior)


def made_up(
    seed: int,
    severity: float,
    *,
    items: int = 1500,
    each: int = 30,
    one_rank: bool = False,
    cutoff: int | None = None,
) -> Log:
    """Return items that two features partly explain, shown at ranks chosen at random."""
    rng = np.random.default_rng(seed)
    features = rng.random((items, 3), dtype=np.float32)
    liking = 1.2 * features[:, 0] + 0.8 * features[:, 1] + 0.5 * rng.normal(size=items)
    relevance = 0.02 + 0.68 * expit(2 * (liking - liking.mean()) / liking.std() - 1.5)
    shown = rng.multinomial(each, np.full(RANKS, 1 / RANKS), size=items)
    if one_rank:
        shown = each * (np.arange(RANKS) == rng.integers(0, RANKS, (items, 1)))
    p = PositionBased(Examination(severity, cutoff)).examination(np.arange(RANKS) + 1)
    clicks = rng.binomial(shown, p * relevance[:, None])
    return Log(features, BehaviorStats.of(shown, clicks), p)


def fitted(log: Log, assumed: Examination | None = None) -> State:
    return log.fit(EBRanker("auto", examination=assumed))


def believed_by_default() -> object:
    return (Valuation.of(Examination(), slots=RANKS).exposure * UNIT).tolist()


def assert_recovered(state: State, log: Log, errors: float = 3.0) -> None:
    """The learned curve is the true one within some standard errors, which are small."""
    off = np.abs(state["examination"] - log.p)
    assert np.all(off <= errors * state["examination_error"] + 1e-12)
    assert np.all(state["examination_error"] < 0.05)


# --- what a log can tell -------------------------------------------------------------------------


@pytest.mark.parametrize("assumed", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("severity", [0.5, 1.0, 2.0])
def test_a_mistaken_curve_is_put_right(severity: float, assumed: float) -> None:
    log = made_up(11, severity, items=3000)
    assert_recovered(fitted(log, Examination(assumed)), log)


def test_refits_stay_where_the_first_fit_arrived() -> None:
    log = made_up(12, 0.5, items=3000)
    ranker = EBRanker("auto")
    first, *_, last = [log.fit(ranker) for _ in range(4)]
    np.testing.assert_allclose(last["examination"], first["examination"], atol=0.01)
    assert_recovered(last, log)


@pytest.mark.parametrize("seed", [27, 28, 29])
def test_a_refit_explains_a_log_that_has_grown_better_than_the_last_fit(seed: int) -> None:
    """Weights and shape belong together: neither changes what the other means."""
    few, log = (made_up(seed, 1.0, items=600, each=each) for each in (10, 200))
    ranker = EBRanker("auto")
    few.fit(ranker)
    before = log.loss(ranker)
    log.fit(ranker)
    assert log.loss(ranker) < before


def test_what_was_once_thought_certain_is_learned_as_the_log_grows() -> None:
    """A belief that all look at every rank is no trap, however little the first log says."""
    few, many = made_up(13, 1.0, items=5), made_up(14, 1.0, items=3000)
    ranker = EBRanker("auto", examination=Examination(severity=0.0))
    assert few.fit(ranker)["examination"].tolist() == [1.0] * RANKS
    assert_recovered([many.fit(ranker) for _ in range(4)][-1], many)


@pytest.mark.slow
@pytest.mark.parametrize("severity", [0.5, 1.0, 2.0])
def test_standard_errors_are_calibrated(severity: float) -> None:
    z = []
    for seed in range(40):
        log = made_up(seed, severity)
        state = fitted(log)
        z.append((state["examination"] - log.p)[1:] / state["examination_error"][1:])
    assert 0.6 < np.std(z) < 1.6
    assert abs(np.mean(z)) < 1.0
    assert np.abs(z).max() < 5.0


def test_a_sample_of_the_rows_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    log = made_up(27, 1.0)
    whole = fitted(log)
    monkeypatch.setattr(fitting, "MOST_ROWS", 500)
    part = fitted(log)
    for name in ("examination_error", "examination_support"):
        np.testing.assert_allclose(part[name], whole[name], rtol=0.25)


def test_the_first_rank_is_what_the_others_are_relative_to() -> None:
    """Users of whom a tenth never look look at rank 2 as much less than at rank 1 as others do."""
    log = made_up(16, 1.0, items=3000)
    whole = fitted(log)["examination"]
    lower = fitted(log, Examination(curve=tuple((0.9 * log.p).tolist())))["examination"]
    assert lower[0] == pytest.approx(0.9, abs=1e-8)
    np.testing.assert_allclose(lower / 0.9, whole, atol=0.03)
    ranker = EBRanker("auto")
    log.fit(ranker)
    ranker.examination = Examination(curve=tuple((0.9 * log.p).tolist()))  # configured anew
    assert log.fit(ranker)["examination"][0] == pytest.approx(0.9, abs=1e-8)


def test_ranks_that_nobody_was_believed_to_look_at() -> None:
    """The first rank assumed to be looked at is what the others are relative to."""
    log = made_up(17, 1.0, items=3000)
    state = fitted(log, Examination(curve=(0.0, 0.6, 0.5, 0.0, 0.4)))
    p = state["examination"]
    assert p[1] == pytest.approx(0.6, abs=1e-8)
    np.testing.assert_allclose(p / p[1], log.p / log.p[1], atol=0.1)


@pytest.mark.parametrize("assumed", [Examination(), Examination(cutoff=3)])
def test_users_who_stop(assumed: Examination) -> None:
    """Nobody looks beyond rank 3: many impressions without a click say so."""
    log = made_up(24, 1.0, cutoff=3)
    state = fitted(log, assumed)
    assert state["examination"][3:].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(state["examination"][:3], log.p[:3], atol=0.05)
    assert np.all(state["examination_error"] < 0.05)


def test_users_who_go_on_again() -> None:
    """A rank learned to be 0 is no trap."""
    ranker = EBRanker("auto", examination=Examination(cutoff=3))
    for log in (made_up(25, 1.0, cutoff=3), *[made_up(26, 1.0)] * 3):
        state = log.fit(ranker)
    np.testing.assert_allclose(state["examination"], log.p, atol=0.06)


# --- what it cannot ------------------------------------------------------------------------------


@pytest.mark.parametrize("severity", [0.5, 2.0])
def test_one_rank_for_each_item_or_a_few_impressions_keep_the_configured_curve(
    severity: float,
) -> None:
    state = fitted(made_up(18, severity, one_rank=True))
    assert state["examination_support"].tolist() == [0.0] * RANKS
    few = fitted(made_up(19, severity, items=20, each=5))
    for kept in (state, few):
        assert kept["examination"].tolist() == believed_by_default()


def test_a_log_of_a_dozen_clicks_tells_too_vaguely() -> None:
    log = made_up(20, 1.0, items=150, each=10)
    clicks = np.random.default_rng(0).binomial(log.behavior.counts[:, 1], 0.05)
    rare = BehaviorStats.of(log.behavior.counts[:, 0], clicks)
    state = fitted(log._replace(behavior=rare))
    assert state["examination"].tolist() == believed_by_default()
    assert state["examination_support"].min() > 200


@st.composite
def tiny_logs(draw: st.DrawFn) -> tuple[Features, BehaviorStats, Examination]:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    items, slots = draw(st.integers(0, 6)), draw(st.integers(1, SLOTS))
    behaviors = draw(st.sampled_from([CLICKS, SHOP]))
    most = draw(st.sampled_from([0, 1, 5, 1000]))
    counts = np.zeros((items, behaviors.outcomes, slots), np.int32)
    counts[:, 0] = rng.integers(0, most + 1, (items, slots))
    counts[:, 1] = rng.binomial(counts[:, 0], draw(st.sampled_from([0.0, 0.3, 1.0])))
    return rng.random((items, 2), dtype=np.float32), BehaviorStats(counts, behaviors), draw(curves)


@pytest.mark.slow
@settings(max_examples=60)
@given(tiny_logs(), st.booleans())
def test_any_log_gives_a_curve(
    log: tuple[Features, BehaviorStats, Examination], validated: bool
) -> None:
    features, behavior, assumed = log
    ranker = EBRanker("auto", examination=assumed)
    for warm_start in (False, True):
        validation = (features, behavior) if validated else None
        ranker.fit(features, behavior, validation=validation, warm_start=warm_start)
        assert ranker.state_ is not None
        ranker.policy.prior.check_state(ranker.state_)
        assert all(np.all(np.isfinite(values)) for values in ranker.state_.values())
        if "examination" in ranker.state_:
            p = ranker.state_["examination"]
            assert np.all((p == 0.0) | (p >= SMALLEST_P) & (p <= 1.0))
            first = np.argmax(behavior.valuation(assumed).exposure > 0)
            assert p[first] == pytest.approx(behavior.valuation(assumed).exposure[first] * UNIT)
        if len(behavior):
            assert np.all(np.isfinite(ranker.rank(features, behavior).scores))


# --- curves by slot ------------------------------------------------------------------------------


def test_a_curve_has_the_same_probability_for_all_ranks_of_a_slot() -> None:
    p = np.linspace(1.0, 0.1, 12)
    curve = Examination().by_slot(p)
    valuation = Valuation.of(curve, slots=12)
    np.testing.assert_allclose(valuation.exposure * UNIT, p, atol=1e-9)


def test_ranks_deeper_than_the_log_are_examined_as_configured() -> None:
    """A ranker that learned from lists of five may rank items that were seen at rank 8."""
    log = made_up(20, 0.5, items=3000)
    ranker = EBRanker("auto")
    log.fit(ranker)
    np.testing.assert_array_equal(ranker.curve([6, 8, 40]), Examination()([6, 8, 40]))
    deep = np.zeros((2, 8), int)
    deep[:, 7] = 50
    liked = BehaviorStats.of(deep, deep * np.array([[0], [1]]) // 4)
    first, second = ranker.rank(log.features[[0, 0]], liked).candidates.relevance
    assert second > 2 * first


def test_a_refit_may_have_more_slots_or_fewer() -> None:
    log = made_up(21, 0.5)
    ranker = EBRanker("auto")
    for slots in (RANKS, SLOTS, RANKS):
        counts = np.pad(log.behavior.counts, ((0, 0), (0, 0), (0, slots - RANKS)))
        p = log._replace(behavior=BehaviorStats(counts)).fit(ranker)["examination"]
        assert len(p) == slots
        np.testing.assert_allclose(p[:RANKS], log.p, atol=0.12)


# --- where a refit starts -----------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "anew"), [(200, True), (300, False)])
def test_with_more_than_four_times_the_clicks_a_fit_starts_anew(rows: int, anew: bool) -> None:
    log, ranker = made_up(28, 1.0, items=900), EBRanker("auto")
    before = log._replace(features=log.features[:rows], behavior=log.behavior[:rows]).fit(ranker)
    after, fresh = log.fit(ranker), fitted(log)
    assert np.array_equal(after["shape"], fresh["shape"]) == anew
    assert after["clicks"] == (fresh if anew else before)["clicks"]


def test_a_log_without_clicks_is_forgotten_once_there_are_some() -> None:
    log = made_up(25, 1.0, items=400, each=10)
    nothing = BehaviorStats.of(log.behavior.counts[:, 0], np.zeros((400, RANKS), np.int64))
    ranker, fresh = EBRanker("auto"), EBRanker("auto")
    log._replace(behavior=nothing).fit(ranker)
    for own in (ranker, fresh):
        log.fit(own)
    assert log.loss(ranker) == pytest.approx(log.loss(fresh), abs=0.01)


def test_clicks_where_nobody_was_believed_to_look_count_in_the_loss() -> None:
    """Otherwise a curve that excludes them seems better than any that explains them."""
    log = made_up(26, 0.5, items=400, each=10)
    ranker = EBRanker("auto", examination=Examination(cutoff=3))
    before = log.loss(ranker)
    log.fit(ranker)
    assert log.loss(ranker) < before


# --- whom it learns from -------------------------------------------------------------------------

FIXED = "auto:ridge=0.01,early_stopping=false"
"""Leaves validation rows nothing to decide."""


def test_validation_rows_are_never_learned_from() -> None:
    log, other = made_up(22, 1.0, items=300), made_up(23, 2.0, items=300)
    states = []
    for validation in (None, other[:2], log[:2]):
        ranker = EBRanker(FIXED).fit(log.features, log.behavior, validation=validation)
        assert ranker.state_ is not None
        states.append({name: values.tobytes() for name, values in ranker.state_.items()})
    assert states[0] == states[1] == states[2]


@dataclass(frozen=True)
class Level(Learner):
    name, help = "level", "The same score for every item, which nobody may change."

    def fit(self, rows: Rows, validation: Rows | None, start: State | None) -> State:
        return {"level": np.zeros(1)}

    def scores(self, state: State, features: Features, threads: int | None = None) -> Floats:
        return np.broadcast_to(state["level"], len(features))


def test_scores_of_a_learner_of_ones_own_are_only_read() -> None:
    log = made_up(24, 1.0, items=300)
    ranker = EBRanker(replace(parse("auto"), learner=Level())).fit(log.features, log.behavior)
    assert np.isfinite(ranker.rank(log.features, log.behavior).scores).all()
