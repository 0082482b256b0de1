"""What every policy must do, whatever its parts: family, learner, estimator, bonus."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ebrank import policy as policies
from ebrank import streams
from ebrank.compiled import kernel
from ebrank.evidence import CLICKS, Behaviors, BehaviorStats, Examination, Sums
from ebrank.formula import Score
from ebrank.plugins import path_of
from ebrank.policy import Policy
from ebrank.priors import ItemPrior
from ebrank.priors.rows import Rows
from ebrank.ranker import EBRanker
from ebrank.scoring import scores
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.scored import score_of
from ebrank.simulation.users import PositionBased
from ebrank.simulation.world import World, new_world
from ebrank.testing.datasets import tiny
from ebrank.testing.plain import plain_score
from ebrank.typing import Compiled, Features, Floats, Keys, SmallInts

FEATURES = 3
CURVES = (
    Examination(cutoff=5),
    Examination(severity=0.0),
    Examination(curve=(0.9, 0.0, 0.3, 0.2, 0.1)),
)
SHOP = Behaviors.of({"click": 0.25, "purchase": 1.0})


def check_policy(policy: Policy | str) -> None:
    """Raise where a policy breaks a rule that all policies keep.

    It is how a family, a learner or a bonus of your own is checked: make it part of a policy, as in
    `check_policy("ebrank:bonus=mymodule:MyBonus")`.
    """
    checked = policies.parse(policy) if isinstance(policy, str) else policy
    check_text(checked)
    for state in states(checked):
        try:
            check_scores(checked, state)
            check_relevance(checked, state)
            check_loss(checked, state)
        except AssertionError as problem:
            problem.add_note(f"with {state.examination} and {state.stats.behaviors}")
            raise
    check_fit(checked)
    check_file(checked)


# --- states that items can be in -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class State:
    """Items as a policy meets them: what features promise, and what users did."""

    prior: ItemPrior
    stats: BehaviorStats
    examination: Examination
    keys: Keys

    @property
    def sums(self) -> Sums:
        """n, c, C and E."""
        return self.stats.sums(self.examination)


def states(policy: Policy, *, n: int = tiny().n_rows) -> Iterator[State]:
    """Yield items that were never shown, rarely, and a million times, under several curves."""
    rng = np.random.default_rng(4)
    for curve in CURVES:
        for behaviors in (CLICKS, SHOP):
            learned = rng.choice([-12.0, 0.0, 12.0, *rng.normal(scale=2.0, size=9)], n)
            stats = BehaviorStats(random_counts(rng, n, behaviors, slots=5), behaviors)
            keys = rng.integers(2**63, size=n).astype(np.uint64)
            yield State(policy.family.prior(learned), stats, curve, keys)


def random_counts(rng: np.random.Generator, n: int, behaviors: Behaviors, slots: int) -> SmallInts:
    """Return counts of n items, from none at all to a million at each rank."""
    most = rng.choice([0, 1, 5, 100, 1_000_000], (n, 1))
    shown = rng.integers(0, most + 1, (n, slots))
    shares = rng.dirichlet(np.ones(1 + len(behaviors.all)), (n, slots))
    outcomes = np.moveaxis(np.floor(shown[..., None] * shares[..., 1:]), 2, 1)
    return np.concatenate([shown[:, None], outcomes], axis=1).astype(np.int32)


# --- text ----------------------------------------------------------------------------------------


def check_text(policy: Policy) -> None:
    """Its text reads back, and copies are equal to it."""
    text = str(policy)
    again = policies.parse(text)
    assert again == policy, f"its text {text!r} reads back as another policy, {again}"
    assert hash(again) == hash(policy), "equal policies have different hashes"
    for parameter in policy.parameters():
        assert parameter.help, f"the parameter {parameter.name} has no help"
        if parameter.default is not None:
            parameter.check(parameter.default, policy.name)
        for value in parameter.grid:
            changed = policy.with_parameters(**{parameter.name: value})
            assert changed.values()[parameter.name] == value, f"{parameter.name} cannot be set"
    for part in (policy.family, policy.learner, policy.bonus):
        assert part.help.endswith("."), f"help of {part.name} must be a sentence, not {part.help!r}"
    assert policy.score.compiled is not None
    assert pickle.loads(pickle.dumps(policy)) == policy, "a pickled copy is another policy"


# --- scores --------------------------------------------------------------------------------------


def check_scores(policy: Policy, state: State) -> None:
    """Scores are numbers, and the same in the lab, in the library and in plain Python."""
    for name, score in (("score", policy.score), ("relevance", policy.relevance)):
        library = scores(score, state.prior, state.stats, state.examination, state.keys)
        assert np.all(np.isfinite(library)), f"a {name} is not a number: {library}"
        lab = lab_scores(score, state)
        assert library.tobytes() == lab.tobytes(), f"the lab's {name} is not the library's"
        slow = plain_scores(score, state)
        worst = int(np.argmax(np.abs(library - slow)))
        assert np.allclose(library, slow, rtol=1e-6, atol=1e-9), (
            f"compiled, the {name} of item {worst} is {library[worst]!r}; in plain Python it is "
            f"{slow[worst]!r}"
        )
    ranker = EBRanker(policy, examination=state.examination)
    ties = np.arange(len(state.stats))
    ranking = ranker.rank_by_prior(state.prior, state.stats, tie_keys=ties, draw_keys=state.keys)
    served = scores(policy.score, state.prior, state.stats, state.examination, state.keys)
    assert np.array_equal(ranking.scores, served[ranking.order]), "EBRanker has other scores"
    assert np.array_equal(ranking.order, np.lexsort((ties, -served))), "EBRanker sorts otherwise"
    other = scores(policy.score, state.prior, state.stats, state.examination, state.keys + 1)
    assert policy.noisy != np.array_equal(served, other), (
        "a policy is noisy if, and only if, its scores depend on the key"
    )


def lab_scores(score: Score, state: State) -> Floats:
    """Return the scores as the simulator's sessions compute them."""
    world = lab_world(state.stats, state.examination)
    out = np.empty(len(state.stats))
    a, b = state.prior
    write_lab_scores(world, score.compiled, a, b, score.parameters, state.keys, out)
    return out


def lab_world(stats: BehaviorStats, examination: Examination) -> World:
    """Return the state of a simulation in which users did what the statistics say.

    The statistics are of as many items as `tiny()` has rows, and of ranks 1, 2, ... up to ten.
    """
    config = SimulationConfig(
        list_length=stats.slots, users=PositionBased(examination), behaviors=stats.behaviors
    )
    world = new_world(tiny(), config, np.uint64(1))
    world.counts[:] = stats.counts
    slots, behaviors = stats.slots, len(stats.behaviors.all)
    rows = world.table.reshape(2 + 2 * behaviors, slots)
    world.exposure[:] = stats.counts[:, 0] @ rows[1]
    for behavior in range(1, 1 + behaviors):
        world.weighted_clicks[:] += stats.counts[:, behavior] @ rows[1 + behaviors + behavior]
    return world


@kernel
def write_lab_scores(
    world: World,
    score: Compiled,
    a: Floats,
    b: Floats,
    parameters: Floats,
    keys: Keys,
    out: Floats,
) -> None:
    """Write the score of every row of a simulation."""
    for row in range(len(out)):
        out[row] = score_of(world, score, a, b, parameters, row, keys[row])


def plain_scores(score: Score, state: State) -> Floats:
    """Return the scores by the plain functions that the formula is made of."""
    slow = plain_score(score)
    sums, valuation = state.sums, state.stats.valuation(state.examination)
    b = np.broadcast_to(state.prior.b, state.prior.a.shape)
    found = []
    with np.errstate(all="ignore"):
        for item in range(len(state.stats)):
            behavior = {name: float(column[item]) for name, column in sums._asdict().items()}
            found.append(
                slow(
                    a=float(state.prior.a[item]),
                    b=float(b[item]),
                    **behavior,
                    counts=state.stats.counts[item].ravel().tolist(),
                    slots=valuation.slots,
                    behaviors=valuation.behaviors,
                    table=valuation.table.tolist(),
                    key=int(state.keys[item]),
                )
            )
    return np.array(found)


# --- relevance -----------------------------------------------------------------------------------


def check_relevance(policy: Policy, state: State) -> None:
    """The estimate is the prior's before users speak, and then moves as they do."""
    sums, mean = state.sums, policy.prior_mean(state.prior)
    estimate = _relevance(policy, state)
    rate, seen = policy.estimator.rate(sums), sums.exposure > 0.0
    if policy.choices.part == "prior":
        assert np.allclose(estimate, mean, rtol=1e-12), "part=prior is not the prior's mean"
        return
    if policy.choices.part == "behavior":
        assert np.allclose(estimate, rate, rtol=1e-12), "part=behavior is not the click rate"
        return
    close = np.isclose(estimate, mean, rtol=1e-6)
    assert np.all(close[~seen]), "the relevance of an unseen item is not the prior's mean"
    if not policy.estimator.by_rank:
        low, high = np.minimum(mean, rate), np.maximum(mean, rate)
        slack = 1e-9 * np.maximum(high, 1.0)
        within = (estimate >= low - slack) & (estimate <= high + slack)
        assert np.all(within[seen]), (
            f"an estimate is not between the prior's mean and the click rate: item "
            f"{int(np.argmin(within | ~seen))}"
        )
        return
    assert np.all((estimate > 0.0) & (estimate < 1.0)), "the exact estimate is not in (0, 1)"
    for outcome, sign in ((0, -1.0), (len(state.stats.behaviors.all), 1.0)):
        moved = _relevance(policy, _one_more(state, outcome)) - estimate
        assert np.all(sign * moved > -1e-6), (
            f"one more {'click lowers' if outcome else 'pass raises'} the relevance of item "
            f"{int(np.argmin(sign * moved))}"
        )


def _relevance(policy: Policy, state: State) -> Floats:
    return scores(policy.relevance, state.prior, state.stats, state.examination)


def _one_more(state: State, outcome: int) -> State:
    """Return the state after each item was shown once more on top, to this outcome."""
    counts = state.stats.counts.copy()
    counts[:, 0, 0] += 1
    counts[:, outcome, 0] += outcome > 0
    return replace(state, stats=BehaviorStats(counts, state.stats.behaviors))


# --- learning ------------------------------------------------------------------------------------


def check_loss(policy: Policy, state: State) -> None:
    """The slope of the family's loss is its derivative, and both are numbers."""
    few = state.stats.counts.max(axis=(1, 2)) <= 100
    counts = np.ascontiguousarray(state.stats.counts[few])
    stats = BehaviorStats(counts, state.stats.behaviors)
    features = np.zeros((len(stats), FEATURES), np.float32)
    rows = policy.rows(features, stats, state.examination, threads=1)
    at = np.random.default_rng(5).uniform(-3.0, 3.0, len(stats))
    step = 1e-3
    losses, slopes = rows.losses_and_slopes(at)
    assert np.all(np.isfinite(losses)), "a loss is not a number"
    above, below = (rows.losses_and_slopes(at + shift)[0] for shift in (step, -step))
    expected = (above - below) / (2.0 * step)
    worst = int(np.argmax(np.abs(slopes - expected)))
    assert np.allclose(slopes, expected, rtol=1e-3, atol=1e-4), (
        f"the slope of the loss at {at[worst]:.3f} is {slopes[worst]!r}, but the loss changes by "
        f"{expected[worst]!r}"
    )


def check_fit(policy: Policy) -> None:
    """Fitting lowers the loss, can go on from where it was, and threads change nothing."""
    rows, unseen = _rows(policy, seed=1), _rows(policy, seed=2)
    learner = policy.learner
    fitted = learner.fit(rows, None, None)
    before = _loss(rows, np.zeros(len(rows.features)))
    after = _loss(rows, learner.scores(fitted, rows.features))
    assert after < before, f"fitting raises the loss from {before} to {after}"
    again = _loss(rows, learner.scores(learner.fit(rows, None, fitted), rows.features))
    assert again < before, f"a second fit raises the loss to {again}"
    watched = learner.fit(rows, unseen, None)
    validated = _loss(unseen, learner.scores(watched, unseen.features))
    start = _loss(unseen, np.zeros(len(unseen.features)))
    assert validated < start, f"fitting raises the validation loss from {start} to {validated}"
    for threads in (2, 5):
        same = learner.fit(replace(rows, threads=threads), replace(unseen, threads=threads), None)
        for name, values in watched.items():
            assert values.tobytes() == same[name].tobytes(), (
                f"on {threads} threads it learns another {name}"
            )
    nothing = learner.fit(rows.subset(np.zeros(len(rows.features), np.bool_)), None, None)
    plain = policy.prior(None, rows.features)
    for mine, other in zip(policy.prior(nothing, rows.features), plain, strict=True):
        assert np.array_equal(mine, other), "a prior fitted to nothing is not the unfitted one"


def _loss(rows: Rows, at: Floats) -> float:
    """Return the mean loss of rows with these scores."""
    losses, _ = rows.losses_and_slopes(at)
    return float(losses.sum() / rows.count)


def _log(seed: int, n: int = 400) -> tuple[Features, BehaviorStats]:
    """Return items that users like the more, the higher their first feature."""
    rng = np.random.default_rng(seed)
    features = rng.random((n, FEATURES), dtype=np.float32)
    shown = rng.integers(0, 12, (n, 5))
    chances = CURVES[0](np.arange(1, 6)) * (0.05 + 0.8 * features[:, :1])
    return features, BehaviorStats.of(shown=shown, clicks=rng.binomial(shown, chances))


def _rows(policy: Policy, seed: int) -> Rows:
    return policy.rows(*_log(seed), CURVES[0], threads=1)


# --- files ---------------------------------------------------------------------------------------


def check_file(policy: Policy) -> None:
    """A fitted ranker comes back from its file: the same policy, the same bits."""
    features, stats = _log(seed=1)
    ranker = EBRanker(policy, examination=CURVES[0], seed=3).fit(features, stats)
    own = [path_of(type(part)) for part in (policy.family, policy.learner, policy.bonus)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        ranker.save(path)
        loaded = EBRanker.load(path, allow=own)
    assert loaded.policy == policy, f"the file holds another policy: {loaded.policy}"
    assert ranker.state_ is not None
    assert loaded.state_ is not None
    assert set(loaded.state_) == set(ranker.state_), "the file holds another state"
    for name, values in ranker.state_.items():
        assert values.tobytes() == loaded.state_[name].tobytes(), f"the file holds other {name}"
    keys = np.array([streams.child(np.uint64(1), i) for i in range(len(stats))], np.uint64)
    mine, other = (each.rank(features, stats, tie_keys=keys) for each in (ranker, loaded))
    assert np.array_equal(mine.order, other.order), "a loaded ranker ranks otherwise"
    assert mine.scores.tobytes() == other.scores.tobytes(), "a loaded ranker has other scores"
