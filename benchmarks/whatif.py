"""Is a forecast right? Hidden truths, each logged and then judged from its log alone.

A truth is a shop of 80 queries with 12 to 40 candidates, half of which arrive while it runs. A
pair's relevance is logistic in its features and in what they do not know; how relevant the best
are, how much features know, how far users look and how traffic is spread differ from truth to
truth. Smoothed click rates serve the log. From then on, each policy serves as many lists again,
once in the truth and once in each world that the log leaves possible. An interval covers if it
holds what happened in the truth.

`python -m benchmarks.whatif [--truths N] [--seed N] [--users pbm|cascade|dcm]` prints the figures
of one kind of users, with `--speed` how long a large log takes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.figure import Figure, print_figures
from ebrank.addons.whatif.belief import Draw
from ebrank.addons.whatif.forecast import Forecast, interval, whatif
from ebrank.addons.whatif.history import History
from ebrank.addons.whatif.replay import THERE, Plan, Replay
from ebrank.evidence import BehaviorStats, Examination
from ebrank.kernels import streams
from ebrank.lab.rankers import registry
from ebrank.lab.simulation import users as user_models
from ebrank.lab.simulation.users import UserModel
from ebrank.typing import Features, Floats, Ints

QUERIES, FEATURES, LENGTH, PERIODS = 80, 5, 5, 6
PER_QUERY = 150
"""Lists of a query in the log, on average."""
POLICIES = ("auto", "auto:bonus=none", "smoothedctr")
PAIRS = (0, 1), (0, 2), (1, 2)
TRUTHS, FIRST_SEED = 50, 701
WORLDS = 19
"""The lowest and the highest of nineteen draws hold a twentieth nine times out of ten."""


@dataclass(frozen=True, eq=False)
class Truth:
    """A shop that only this file knows: its pairs, when each arrives, and its users."""

    pointers: Ints
    features: Features
    relevance: Floats
    due: Ints
    lists: int
    traffic: Floats
    examination: Examination
    users: UserModel | None

    @classmethod
    def draw(cls, seed: int, users: str = "pbm") -> Truth:
        """Return a truth."""
        rng = np.random.default_rng([seed, 25])
        sizes = rng.integers(12, 41, QUERIES)
        n, lists = int(sizes.sum()), PER_QUERY * QUERIES
        features = rng.uniform(size=(n, FEATURES)).astype(np.float32)
        noise, highest, center = rng.uniform(0.3, 1.2), rng.uniform(0.1, 0.8), rng.uniform(1, 2.5)
        score = (features @ [1.2, 0.8, 0.4, 0.0, 0.0] - 1.2) / 0.43
        z = (score + noise * rng.standard_normal(n)) / np.hypot(1.0, noise)
        relevance = 0.1 * highest + 0.9 * highest / (1.0 + np.exp(center - 1.8 * z))
        due = np.where(rng.uniform(size=n) < 0.5, THERE, rng.integers(2 * lists, size=n))
        due[np.cumsum(sizes) - sizes] = THERE
        traffic = rng.dirichlet(np.full(QUERIES, 2.0))
        curve = Examination(severity=rng.uniform(0.6, 1.6), cutoff=LENGTH)
        model = None if users == "pbm" else user_models.parse(users)
        pointers = np.append(0, np.cumsum(sizes))
        return cls(pointers, features, relevance, due, lists, traffic, curve, model)

    def log(self, key: np.uint64) -> History:
        """Return what a store knows after smoothed click rates have served."""
        nothing = BehaviorStats.zeros(len(self.due), slots=LENGTH)
        run = self.replay(nothing, self.due, key)
        run.run(registry.parse("smoothedctr"))
        return self.history(BehaviorStats(np.ascontiguousarray(run.world.counts)))

    def history(self, stats: BehaviorStats) -> History:
        """Return the pairs with these counts."""
        arrived = np.maximum(self.due, 0) / self.lists
        return History("truth", self.pointers, self.features, stats, arrived)

    def replay(self, stats: BehaviorStats, due: Ints, key: np.uint64) -> Replay:
        """Return the truth with these counts, and these arrivals."""
        plan = Plan(self.history(stats), due, "today", self.lists, LENGTH)
        draw = Draw(self.relevance, self.examination, self.traffic)
        return Replay(plan, draw, key, PERIODS, 1, self.users)

    def future(self, log: History, policy: str, key: np.uint64) -> float:
        """Return what a list earns from today on: expected clicks, or clicks of other users."""
        due = np.where(self.due < self.lists, THERE, self.due - self.lists)
        run = self.replay(log.stats, due, key)
        before = int(log.stats.clicks.sum())
        value = float(run.run(registry.parse(policy)).value.mean())
        if self.users is None:
            return value
        return float(run.world.counts[:, 1:].sum() - before) / self.lists


def known(truth: Truth, log: History) -> History:
    """Return the log without what has not arrived yet."""
    there = truth.due < truth.lists
    return replace(log, active=there).candidates()


def judged(seed: int, users: str, worlds: int) -> tuple[Floats, Forecast]:
    """Return what each policy earns in a truth, and the forecast from its log."""
    truth, key = Truth.draw(seed, users), streams.trial_key(seed, 1)
    log = truth.log(key)
    earned = [truth.future(log, policy, streams.trial_key(seed, 2)) for policy in POLICIES]
    forecast = whatif(
        known(truth, log), POLICIES, worlds=worlds, periods=PERIODS, seed=seed, threads=1
    )
    return np.array(earned), forecast


def covered(value: float, drawn: Floats) -> bool:
    """Return whether the interval of some worlds holds what happened."""
    _, low, high = interval(drawn)
    return low <= value <= high


def coverage(truths: int, seed: int, users: str, worlds: int = WORLDS) -> Iterator[Figure]:
    """Yield how often intervals hold what happened, and what choosing by the forecast costs."""
    began = time.process_time()
    runs = [judged(each, users, worlds) for each in range(seed, seed + truths)]
    spent = time.process_time() - began
    name = f"{truths} truths, {users}"
    for at, policy in enumerate(POLICIES):
        own = [(earned[at], made.per_list[:, at]) for earned, made in runs]
        yield _covering(f"{name}: {policy}", own, "85–95 %" if users == "pbm" else "")
    for one, other in PAIRS:
        own = [(e[one] - e[other], f.per_list[:, one] - f.per_list[:, other]) for e, f in runs]
        target = "85–95 %" if users == "pbm" else ""
        yield _covering(f"{name}: {POLICIES[one]} − {POLICIES[other]}", own, target)
    lost = np.array([1.0 - earned[made.best] / earned.max() for earned, made in runs])
    yield Figure(
        f"{name}: what the chosen policy loses to the best",
        f"{100 * lost.max():.2f} % at most, {100 * lost.mean():.2f} % on average; "
        f"{spent / truths:.1f} s of processor time per truth",
        "≤ 1 %",
        bool(lost.max() <= 0.01),
    )


def _covering(name: str, own: list[tuple[float, Floats]], target: str) -> Figure:
    inside = float(np.mean([covered(value, drawn) for value, drawn in own]))
    happened = np.mean([value for value, _ in own])
    expected = np.mean([drawn.mean() for _, drawn in own])
    text = f"{100 * inside:.0f} % covered; happened {happened:.4f}, forecast {expected:.4f}"
    return Figure(name, text, target, not target or 0.85 <= inside <= 0.95)


def speed() -> Iterator[Figure]:
    """Yield how long a million lists take, with three policies."""
    rng = np.random.default_rng(7)
    n, size, lists = 2000, 40, 1_000_000
    relevance = rng.beta(1.0, 6.0, n * size)
    features = np.column_stack(
        [relevance + rng.normal(0.0, 0.1, n * size), rng.uniform(size=n * size)]
    )
    nothing = BehaviorStats.zeros(n * size, slots=LENGTH)
    arrived = np.where(rng.uniform(size=n * size) < 0.5, 0.0, rng.uniform(size=n * size))
    pointers = np.arange(n + 1) * size
    history = History("shop", pointers, features.astype(np.float32), nothing, arrived)
    due = np.where(arrived > 0.0, (arrived * lists).astype(np.int64), THERE)
    due[pointers[:-1]] = THERE
    draw = Draw(relevance, Examination(), rng.dirichlet(np.full(n, 2.0)))
    run = Replay(Plan(history, due, "start", lists, LENGTH), draw, streams.trial_key(7, 0), 5)
    run.run(registry.parse("smoothedctr"))
    log = replace(history, stats=BehaviorStats(np.ascontiguousarray(run.world.counts)))
    began, spent = time.perf_counter(), time.process_time()
    whatif(log, POLICIES)
    seconds, spent = time.perf_counter() - began, time.process_time() - spent
    yield Figure(
        f"a log of {lists:,} lists and {n * size:,} pairs, three policies, 32 worlds",
        f"{seconds:.0f} s, {spent:.0f} s of processor time",
        "≤ 120 s",
        seconds <= 120.0,
    )


def figures() -> Iterator[Figure]:
    """Yield all figures."""
    for users in ("pbm", "cascade", "dcm"):
        yield from coverage(TRUTHS, FIRST_SEED, users)
    yield from speed()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--truths", type=int, default=TRUTHS)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--users", default="pbm")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    print_figures(
        speed() if options.speed else coverage(options.truths, options.seed, options.users)
    )


if __name__ == "__main__":
    main()
