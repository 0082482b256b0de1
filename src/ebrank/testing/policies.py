"""What every policy must do, whatever parts it is made of."""

from __future__ import annotations

import itertools
import pickle

import numpy as np

from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.kernels import write_units
from ebrank.kernels.compiled import kernel
from ebrank.lab.sessions.scored import Scorer, room_for_batch, score_batch
from ebrank.lab.sessions.session import World
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.users import PositionBased
from ebrank.lab.simulation.world import new_world
from ebrank.model import scoring
from ebrank.model.formula import Score
from ebrank.model.policy import model_file, policies
from ebrank.model.policy.composition import Scores
from ebrank.model.policy.policies import Policy
from ebrank.model.policy.ranker import EBRanker
from ebrank.model.prior import ItemPrior
from ebrank.testing.datasets import tiny
from ebrank.testing.plain import plain_score
from ebrank.typing import Features, Floats, Keys

CURVE = Examination(cutoff=5)
ITEMS = 400


def check_policy(policy: Policy) -> None:
    """Try a policy on made-up behavior, and raise if it breaks a rule.

    Its text and its pickle restore it. Scores are finite for every state an item may reach, and the
    simulator, `EBRanker` and a ranker read from a file give the same ones, to the bit; plain Python
    gives the same except for the last digits. Relevance is the prior's until users act, and then
    moves as they do; its interval is in order. Fitting explains behavior better than not fitting,
    and the slope of its loss is right.
    """
    check_text(policy)
    check_scores_are_finite(policy)
    check_plain_functions(policy)
    check_relevance(policy)
    check_interval(policy)
    check_simulator_agrees(policy)
    check_loss_slope(policy)
    check_fit(policy)
    check_model_file(policy)


def check_text(policy: Policy) -> None:
    """Text and pickle restore the policy."""
    again = policies.parse(str(policy))
    assert again == policy, f"{policy} reads back as {again}"
    assert pickle.loads(pickle.dumps(policy)) == policy, f"{policy} changes when pickled"


def check_scores_are_finite(policy: Policy) -> None:
    """Items that nobody saw, nobody clicked, everybody clicked, a million saw: all have a score."""
    _, often, _ = _random_state(policy)
    counts = np.zeros((1 + 4 * often.slots, *often.counts.shape[1:]), np.int32)
    ways = itertools.product(range(often.slots), [(1, 0), (1, 1), (1000, 0), (1000, 1000)])
    for state, (slot, times) in zip(counts[1:], ways, strict=True):
        state[:, slot] = times
    behavior = BehaviorStats(np.concatenate([counts, often.counts]))
    bounds, n = single(policy.scores(None, behavior.valuation(CURVE))), len(behavior)
    for score in (0.0, -3.0, 3.0):
        prior = policy.family.prior(np.full(n, score))
        for name, bound in bounds.items():
            values = scoring.scores(bound, prior, behavior, CURVE, keys(n))
            item = int(np.argmin(np.isfinite(values)))
            shown, clicks = behavior.counts[item].tolist()
            assert np.isfinite(values[item]), (
                f"{policy}: the {name} of an item shown {shown} times by rank, clicked {clicks}, "
                f"is {values[item]}"
            )


def check_plain_functions(policy: Policy) -> None:
    """Compiled scores are those of the plain functions; they draw if the policy says so."""
    prior, behavior, own = _random_state(policy)
    bounds = policy.scores(None, behavior.valuation(CURVE))
    for name, bound in single(bounds).items():
        compiled = scoring.scores(bound, prior, behavior, CURVE, own)
        slow = _plain_scores(bound, prior, behavior, own)
        wrong = np.abs(compiled - slow) > 1e-6 * (1.0 + np.abs(slow))
        item = int(np.argmax(wrong))
        assert not wrong.any(), (
            f"{policy}: the {name} of item {item} is {compiled[item]!r}, by the plain functions "
            f"{slow[item]!r}"
        )
    first, other = (
        scoring.scores(bounds.score, prior, behavior, CURVE, each) for each in (own, own + 1)
    )
    assert policy.noisy != np.array_equal(first, other), (
        f"{policy}: a policy is noisy if, and only if, its scores depend on the key"
    )


def _plain_scores(bound: Score, prior: ItemPrior, behavior: BehaviorStats, own: Keys) -> Floats:
    slow = plain_score(bound)
    columns, valuation = behavior.sums(CURVE)._asdict(), behavior.valuation(CURVE)
    b = np.broadcast_to(prior.b, prior.a.shape)
    raw = {
        "slots": valuation.slots,
        "behaviors": valuation.behaviors,
        "table": valuation.table.tolist(),
        "learned": bound.parameters[len(bound.formula.parameters) :].tolist(),
    }
    scores = []
    with np.errstate(all="ignore"):
        for item in range(len(behavior)):
            sums = {name: float(column[item]) for name, column in columns.items()}
            model = {"a": float(prior.a[item]), "b": float(b[item]), "key": int(own[item])}
            counts = behavior.counts[item].ravel().tolist()
            scores.append(slow(**model, **sums, **raw, counts=counts))
    return np.array(scores)


def check_relevance(policy: Policy) -> None:
    """The estimate is the prior's mean before users act, and then moves where they pull it."""
    prior, behavior, _ = _random_state(policy)
    sums, bounds = behavior.sums(CURVE), policy.scores(None, behavior.valuation(CURVE))
    mean, estimate = (
        scoring.scores(bound, prior, behavior, CURVE) for bound in (bounds.prior, bounds.relevance)
    )
    rate, unseen = policy.prior.estimator.rate(sums), sums.exposure == 0.0
    if policy.choices.part != "both":
        expected = mean if policy.choices.part == "prior" else rate
        assert np.allclose(estimate, expected, rtol=1e-12), f"{policy}: not that part alone"
        return
    assert np.allclose(estimate[unseen], mean[unseen], rtol=1e-6), (
        f"{policy}: the relevance of an unseen item is not the prior's mean"
    )
    if policy.prior.estimator.by_rank:
        for outcome, sign in ((0, -1.0), (1, 1.0)):
            counts = behavior.counts.copy()
            counts[:, 0, 0] += 1
            counts[:, 1, 0] += outcome
            more = BehaviorStats(counts)
            moved = scoring.scores(bounds.relevance, prior, more, CURVE) - estimate
            assert np.all(sign * moved > -1e-9), (
                f"{policy}: one more {'click lowers' if outcome else 'pass raises'} the relevance"
            )
        return
    low, high = np.minimum(mean, rate), np.maximum(mean, rate)
    within = (estimate >= low - 1e-9 * high) & (estimate <= high + 1e-9 * high)
    assert np.all(within | unseen), (
        f"{policy}: a relevance is not between the prior's mean and the click rate"
    )


def _random_state(policy: Policy) -> tuple[ItemPrior, BehaviorStats, Keys]:
    """Return items that were never shown, rarely, or a million times."""
    rng = np.random.default_rng(6)
    most = rng.choice([0, 1, 5, 100, 1_000_000], (100, 1))
    shown = rng.integers(0, most + 1, (100, 5))
    behavior = BehaviorStats.of(shown, rng.binomial(shown, rng.random((100, 1))))
    prior = policy.family.prior(rng.choice([-12.0, 0.0, 12.0, *rng.normal(size=9)], 100))
    return prior, behavior, keys(100)


def check_interval(policy: Policy) -> None:
    """Intervals are in order and in [0, 1]; those of items seen often contain the relevance."""
    prior, behavior, _ = _random_state(policy)
    ranker = EBRanker(policy, examination=CURVE)
    low, high = ranker.ranked(prior, behavior).interval.T
    wrong = ~((low >= 0.0) & (low <= high) & (high <= 1.0))
    item = int(np.argmax(wrong))
    assert not wrong.any(), f"{policy}: an interval of relevance from {low[item]} to {high[item]}"
    if policy.choices.part != "both":
        return
    clicks = np.arange(100, 1000, 100)[:, None]  # of a thousand at rank 1, where estimators agree
    often = ranker.ranked(
        policy.family.prior(np.zeros(9)), BehaviorStats.of(np.full((9, 1), 1000), clicks)
    )
    for relevance, (lowest, highest) in zip(often.relevance, often.interval, strict=True):
        assert lowest <= relevance <= highest, (
            f"{policy}: an item seen a thousand times has the relevance {relevance}, outside its "
            f"interval from {lowest} to {highest}"
        )


def check_simulator_agrees(policy: Policy) -> None:
    """The simulator's sessions and `EBRanker` score the same state alike, to the bit."""
    n, rng = tiny().n_rows, np.random.default_rng(3)
    shown = rng.integers(0, 40, (n, 5))
    behavior = BehaviorStats.of(shown, rng.binomial(shown, 0.3))
    prior, own = policy.family.prior(rng.normal(size=n)), keys(n)
    world = new_world(tiny(), SimulationConfig(users=PositionBased(CURVE)), np.uint64(1))
    world.counts[:] = behavior.counts
    write_units(world.counts, world.table, world.weighted_clicks, world.exposure)
    score = policy.scores(None, behavior.valuation(CURVE)).score
    simulated = np.empty(n)
    _write_simulated(world, Scorer.of(score, prior.a, prior.b), own, simulated)
    ranker = EBRanker(policy, examination=CURVE)
    ranking = ranker.ranked(prior, behavior, draws=own)
    differing = np.flatnonzero(simulated != ranking.candidates.scores)
    assert not len(differing), f"{policy}: item {differing[0]} has another score in the simulator"
    tie_keys = np.random.PCG64(ranker.seed).random_raw(n)
    order = np.lexsort((tie_keys, -simulated))
    assert np.array_equal(order, ranking.order), f"{policy}: another order in the simulator"


def check_loss_slope(policy: Policy) -> None:
    """The slope of the loss agrees with finite differences."""
    features, behavior = made_up()
    rows = policy.prior.rows(features, behavior, CURVE, 1)
    scores = np.random.default_rng(5).normal(size=len(features))
    _, slopes = rows.losses_and_slopes(scores)
    step = 1e-5
    up, down = (rows.losses_and_slopes(scores + sign * step)[0] for sign in (1, -1))
    expected = (up - down) / (2 * step)
    wrong = np.abs(slopes - expected) > 1e-4 * (1.0 + np.abs(expected))
    row = int(np.argmax(wrong))
    assert not wrong.any(), f"{policy}: slope {slopes[row]} of row {row}, not {expected[row]}"


def check_fit(policy: Policy) -> None:
    """A fit explains behavior better than no fit, and repeats to the bit on any number of cores."""
    features, behavior = made_up()
    fitted = [
        EBRanker(policy, examination=CURVE, threads=threads).fit(features, behavior)
        for threads in (1, 2)
    ]
    for name, values in (fitted[0].state_ or {}).items():
        assert fitted[1].state_ is not None
        assert np.array_equal(values, fitted[1].state_[name]), f"{policy}: threads change {name}"
    before, after = (
        np.nanmean(ranker.losses(features, behavior))
        for ranker in (EBRanker(policy, examination=CURVE), fitted[0])
    )
    assert after < before, f"{policy}: the loss is {after} after fitting, {before} before"


def check_model_file(policy: Policy) -> None:
    """A model file restores the fitted ranker: the same scores to the bit."""
    features, behavior = made_up()
    ranker = EBRanker(policy, examination=CURVE).fit(features, behavior)
    own = [value for value in policy.values().values() if isinstance(value, str) and ":" in value]
    again = model_file.from_bytes(model_file.to_bytes(ranker), "a copy", allow=own)
    first, second = (each.rank(features, behavior) for each in (ranker, again))
    assert np.array_equal(first.candidates.scores, second.candidates.scores), (
        f"{policy}: a ranker read from its file scores otherwise"
    )


def made_up() -> tuple[Features, BehaviorStats]:
    """Return items whose first feature tells their relevance, and what users did with them."""
    rng = np.random.default_rng(4)
    features = rng.random((ITEMS, 3), dtype=np.float32)
    relevance = 0.05 + 0.8 * features[:, 0]
    shown = rng.integers(0, 12, (ITEMS, 5))
    clicks = rng.binomial(shown, relevance[:, None] * CURVE(np.arange(1, 6)))
    return features, BehaviorStats.of(shown, clicks)


def single(scores: Scores) -> dict[str, Score]:
    """Return the formulas that give one number, by name."""
    return {name: score for name, score in scores._asdict().items() if name != "both"}


def keys(count: int) -> Keys:
    """Return what addresses the draws of a policy that draws."""
    return np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@kernel
def _write_simulated(world: World, scorer: Scorer, own: Keys, out: Floats) -> None:
    """Write the scores of all rows as sessions of the simulator compute them."""
    batch = room_for_batch()
    for row in range(len(out)):
        batch.rows[0], batch.keys[0] = row, own[row]
        score_batch(world, scorer, batch, 1)
        out[row] = batch.scores[0]
