"""What a log leaves open: the relevance of every pair, the prior it comes from, how far users look.

The prior and the examination curve are those of `auto`, fitted to the log. A world draws them anew:
they are refitted to a random half of the queries, without replacement. An estimate from half of a
sample differs from that of the whole by as much as the latter from the truth: for a mean, the
variances are σ²/(n/2) − σ²/n and σ²/n (Shao and Wu 1989, the delete-d jackknife with d = n/2). Then
the relevance of each pair is drawn from its posterior under that prior and that curve, and the
share of the traffic that each query has from Dirichlet(lists it has had).

Pairs that nobody has seen, today's and those that are yet to come, are draws from the prior of
their features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ebrank.addons.whatif.history import History
from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.slots import slot_name, slots_for
from ebrank.evidence.valuation import UNIT
from ebrank.model.policy import policies
from ebrank.model.policy.policies import Policy
from ebrank.model.prior import fitting
from ebrank.model.prior.fitting import HIGHEST, LOWEST
from ebrank.model.prior.rows import FEW_GROUPS, Observations
from ebrank.model.scoring import scores
from ebrank.typing import Floats, State

BELIEF = 100
"""Stream of the draws that make a world, beside those of `kernels.streams`."""
RIDGE = 1e-4
"""Weak: the ridge that predicts best makes features say less than they do, and so favors policies
that do not use them. Here, what the log leaves open about their weights is drawn instead."""
MOST_TURNS, FEW_TURNS = 30, 4
"""The most turns of the first fit, and of one to half of the log, which begins where it ended."""
SETTLED = 1e-3
"""A fit ends when no probability moves by more than this."""
LEAST = 0.5
"""A query that was never asked is asked as if it had had this many lists."""


class Draw(NamedTuple):
    """One world that the log leaves possible.

    Attributes:
        relevance: of each row.
        examination: how far down users look.
        traffic: the share of lists that each query has.
    """

    relevance: Floats
    examination: Examination
    traffic: Floats


@dataclass(frozen=True, eq=False)
class Belief:
    """The prior and the curve as fitted to a log."""

    history: History
    policy: Policy
    state: State
    threads: int | None = None

    @classmethod
    def of(cls, history: History, threads: int | None = None) -> Belief:
        """Fit the prior and the curve."""
        policy = policies.make("auto", bonus="draw", ridge=RIDGE)
        return cls(history, policy, _settled(policy, history, None, MOST_TURNS, threads), threads)

    def assumed(self, length: int) -> list[str]:
        """Return the ranks of the log, and down to a length, whose curve it does not reveal."""
        shown = self.history.stats.counts[:, SHOWN].any(axis=0)
        learned = shown & (self.state["examination"] != self._configured)
        learned[np.argmax(self._configured > 0.0)] = True  # the others are relative to it
        needed = {*np.flatnonzero(shown).tolist(), *range(slots_for(length))}
        return [slot_name(slot) for slot in sorted(needed - set(np.flatnonzero(learned).tolist()))]

    @property
    def _configured(self) -> Floats:
        """The configured probability of each slot."""
        exposure = self.history.stats.valuation(self.history.examination).exposure
        return np.asarray(exposure * UNIT, np.float64)

    def draw(self, key: np.uint64, rows: History) -> Draw:
        """Return a world of these rows: some of the log's, and some that are yet to come."""
        policy, given, threads = self.policy, self.history.examination, self.threads
        rng = np.random.default_rng([int(key), BELIEF])
        state = _settled(policy, _half(self.history, rng), self.state, FEW_TURNS, threads)
        state = {**state, "examination": self._examination(state, rng)}
        curve, table = policy.prior.curve(state, given), _observations(rows)
        elsewhere = policy.prior.elsewhere(state, table, given, threads)
        prior = policy.prior.of_items(state, rows.features, threads, elsewhere)
        drawn = policy.scores(state, rows.stats.valuation(curve)).score
        keys = rng.integers(2**63, size=len(rows.stats), dtype=np.uint64)
        traffic = rng.standard_gamma(np.maximum(rows.lists, LEAST))
        return Draw(scores(drawn, prior, rows.stats, curve, keys), curve, traffic / traffic.sum())

    def _examination(self, state: State, rng: np.random.Generator) -> Floats:
        """Return p of each slot; where half of the log tells nothing, as all of it tells it."""
        p, error = self.state["examination"], self.state["examination_error"]
        configured = self._configured
        own = state["examination"]
        drawn = np.clip(p + error * rng.standard_normal(len(p)), LOWEST, HIGHEST)
        return np.where((own == configured) & (p != configured), drawn, own)


def _settled(
    policy: Policy, history: History, state: State | None, most: int, threads: int | None
) -> State:
    """Return the fit after turns until the curve stays where it is.

    A policy takes one turn at a refit and goes on at the next. That is enough to rank by, but the
    level of relevance and the curve, which are easily mistaken for each other, settle later.
    """
    observations, given = _observations(history), history.examination
    for _ in range(most):
        last = state
        state = fitting.fit(policy.prior, observations, None, given, last, threads)
        if last is None:
            continue
        if np.abs(state["examination"] - last["examination"]).max() < SETTLED:
            break
    assert state is not None
    return state


def _observations(history: History) -> Observations:
    return Observations(history.features, history.stats, history.query_of_rows, history.items)


def _half(history: History, rng: np.random.Generator) -> History:
    """Return a random half of the queries; with few queries, what was seen of half the rows."""
    if history.n_queries >= FEW_GROUPS:
        half = rng.permutation(history.n_queries)[: history.n_queries // 2]
        return history.part(np.sort(half))
    counts = history.stats.counts.copy()
    counts[rng.permutation(len(counts))[: len(counts) // 2]] = 0
    if not counts[:, SHOWN + 1 :].any():
        return history
    return replace(history, stats=BehaviorStats(counts, history.stats.behaviors))
