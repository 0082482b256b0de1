"""What every policy must do, whatever parts it is made of."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np

from ebrank import model_file, scoring
from ebrank import policy as policies
from ebrank.compiled import kernel
from ebrank.evidence import BehaviorStats, Examination
from ebrank.policy import Policy
from ebrank.ranker import EBRanker
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.scored import score_of
from ebrank.simulation.world import World, new_world
from ebrank.testing.datasets import tiny
from ebrank.typing import Compiled, Features, Floats, Keys

CURVE = Examination(cutoff=5)
ITEMS = 400


def check_policy(policy: Policy) -> None:
    """Try a policy on made-up behavior and raise where it breaks a promise.

    Its text and its pickle give it back. Scores are finite for every state an item may come to, and
    the simulator, `EBRanker` and a ranker read from a file give the same ones, to the bit. Fitting
    explains behavior better than not fitting, and the slope of its loss is right.
    """
    checks: list[Callable[[Policy], None]] = [
        check_text,
        check_scores_are_finite,
        check_simulator_agrees,
        check_loss_slope,
        check_fit,
        check_model_file,
    ]
    for check in checks:
        check(policy)


def check_text(policy: Policy) -> None:
    """Text and pickle give the policy back."""
    again = policies.parse(str(policy))
    assert again == policy, f"{policy} reads back as {again}"
    assert pickle.loads(pickle.dumps(policy)) == policy, f"{policy} changes when pickled"


def check_scores_are_finite(policy: Policy) -> None:
    """Items that nobody saw, that nobody clicked, that everybody clicked: all have a score."""
    shown = np.zeros((31, 5), np.int64)
    for slot in range(5):
        shown[1 + 6 * slot : 7 + 6 * slot, slot] = [1, 1, 30, 30, 10_000, 10_000]
    clicks = shown * (np.arange(31) % 2 == 0)[:, None]
    behavior = BehaviorStats.of(shown, clicks)
    for score in (0.0, -3.0, 3.0):
        prior = policy.family.prior(np.full(31, score))
        for name, bound in (("relevance", policy.relevance), ("score", policy.score)):
            values = scoring.scores(bound, prior, behavior, CURVE, keys(31))
            bad = np.flatnonzero(~np.isfinite(values))
            assert not len(bad), (
                f"{policy}: the {name} of an item shown {shown[bad[0]].tolist()} times by rank, "
                f"clicked {clicks[bad[0]].tolist()}, is {values[bad[0]]}"
            )


def check_simulator_agrees(policy: Policy) -> None:
    """The simulator's sessions, `EBRanker` and NumPy score the same state alike."""
    data = tiny()
    world = new_world(data, SimulationConfig(), np.uint64(1))
    rng = np.random.default_rng(3)
    world.counts[:, 0] = rng.integers(0, 40, (data.n_rows, 5))
    world.counts[:, 1] = rng.binomial(world.counts[:, 0], 0.3)
    behavior = BehaviorStats(world.counts.copy())
    sums = behavior.sums(CURVE)
    world.weighted_clicks[:] = np.rint(sums.weighted_clicks * 2.0**30)
    world.exposure[:] = np.rint(sums.exposure * 2.0**30)
    prior = policy.family.prior(rng.normal(size=data.n_rows))
    own = keys(data.n_rows)
    simulated = np.empty(data.n_rows)
    score = policy.score
    _simulated(world, score.compiled, prior.a, prior.b, score.parameters, own, simulated)
    ranker = EBRanker(policy, examination=CURVE)
    ranking = ranker.rank_by_prior(prior, behavior, draw_keys=own)
    differing = np.flatnonzero(simulated != ranking.candidates.scores)
    assert not len(differing), f"{policy}: item {differing[0]} has another score in the simulator"
    order = np.lexsort((policies_tie_keys(len(own)), -simulated))
    assert np.array_equal(order, ranking.order), f"{policy}: another order in the simulator"


def check_loss_slope(policy: Policy) -> None:
    """The slope of the loss is what finite differences say."""
    features, behavior = made_up()
    rows = policy.rows(features, behavior, CURVE, 1)
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
    before = EBRanker(policy, examination=CURVE).loss(features, behavior)
    after = fitted[0].loss(features, behavior)
    assert after < before, f"{policy}: the loss is {after} after fitting, {before} before"


def check_model_file(policy: Policy) -> None:
    """A model file gives the fitted ranker back: the same scores to the bit."""
    features, behavior = made_up()
    ranker = EBRanker(policy, examination=CURVE).fit(features, behavior)
    own = [value for value in policy.values().values() if isinstance(value, str) and ":" in value]
    again = model_file.from_bytes(model_file.to_bytes(ranker), "a copy", allow=own)
    first, second = (one.rank(features, behavior) for one in (ranker, again))
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


def keys(count: int) -> Keys:
    """Return what addresses the draws of a policy that draws."""
    return np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def policies_tie_keys(count: int) -> Keys:
    """Return the keys by which an `EBRanker` with the default seed breaks ties."""
    return np.random.PCG64(0).random_raw(count)


@kernel
def _simulated(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: Floats,
    own: Keys,
    out: Floats,
) -> None:
    for row in range(len(out)):
        out[row] = score_of(world, score, a, b, parameters, row, own[row])
