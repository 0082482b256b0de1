"""The budget of exploration: over a day, it may cost at most a share of clicks.

With `ranking.exploration_budget`, two layers hold it. The budget works list by list: one explores
only if what it may cost, with all of today's, is within the share of the clicks that users have
made today. To be safe against wrong estimates for items that hardly anybody has seen, an item that
exploration raises counts as worth nothing. The guard looks at clicks alone: some lists, drawn at
random, do not explore, and if the others fall below (1 − exploration_budget) of their clicks per
list, by an anytime-valid bound, exploration stops everywhere until an operator resumes it.

A list's draw is part of its id, so that an event belongs to an arm on every server and after every
restart, and nothing more is stored:

>>> held_out("5c3f0a2b1d4e6-00ff00ff00ff00ff"), held_out("5c3f0a2b1d4e6-ff00ff00ff00ff00")
(True, False)
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections import Counter
from collections.abc import Mapping

import numpy as np
from cachetools import LRUCache

from ebrank.service import api
from ebrank.service.core.models import Deployment
from ebrank.service.logs import about
from ebrank.service.serving.lists import Draft, Listing, Logged, Stage
from ebrank.service.store.base import Store, StoreError
from ebrank.statistics.sequential import Moments, difference
from ebrank.typing import Floats

GUARD = "exploration"
"""The setting that holds the guard's sums: of lists, their clicks, and squares of these."""
HELD_OUT = 0.05
"""The share of lists that do not explore, for comparison."""
ALPHA = 0.05
"""How likely the guard is to stop exploration that is within its share, ever."""
DEVIATIONS = 3.0
"""By how many standard deviations the budget takes a displaced item to be underrated."""
DAY = 86400.0
RECENT = 100_000
"""Lists whose clicks are remembered, since the square of their number is needed."""

log = logging.getLogger("ebrank.service")


def new_token() -> str:
    """Return the random digits of a list's id."""
    return os.urandom(8).hex()


def held_out(ranking_id: str) -> bool:
    """Return whether a list is one of those that do not explore, by the digits of its id."""
    return int(ranking_id[-16:-8], 16) < HELD_OUT * 2**32


class Budget(Stage):
    """Decides which lists may explore; off without `ranking.exploration_budget`.

    Attributes:
        refused: how many lists of this server had to do without exploration for lack of budget.
    """

    def __init__(
        self,
        store: Store,
        meta: Mapping[str, str],
        exploration_budget: float | None,
    ) -> None:
        """Take a store with its settings, and the limit."""
        self._store = store
        self.refused = 0
        self._limit, self._share = exploration_budget, exploration_budget or 0.0
        self._day = 0.0
        self._cost = self._clicked = 0.0
        self._stored = Counter[str](json.loads(meta.get(GUARD, "{}")))
        self._unsaved = Counter[str]()
        self._clicks: LRUCache[str, int] = LRUCache(RECENT)

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self._limit is not None

    def on(self, deployment: Deployment) -> bool:
        """Return whether there is a limit."""
        return self.limited

    @property
    def stopped(self) -> bool:
        """Whether the guard has stopped exploration."""
        return self._stored["stopped"] > 0

    def shape(self, draft: Draft) -> None:
        """Let a list explore if the budget allows what that may cost; else cut it again."""
        if draft.callers:
            return
        draft.token = new_token()
        view = draft.token if draft.kept is None else draft.kept.view
        # An uncounted list would explore for free.
        if draft.explore and not (draft.request.count and self._allows(view, draft)):
            draft.explore = False
            draft.cut()

    def _allows(self, ranking_id: str, draft: Draft) -> bool:
        """Return whether a list that explores may be served."""
        if self.stopped or held_out(ranking_id):
            return False
        cost = cost_at_worst(draft.served, draft.p)
        self._begin(draft.entry.time)
        fits = self._cost + cost <= self._share * self._clicked
        self.refused += not fits and cost > 0.0
        return fits

    def logged(self, logged: Logged) -> None:
        """Take note of the cost of a list, or of the clicks that pay for it."""
        change, draft = logged.change, logged.draft
        self._begin(change.time)
        self._clicked += change.worth
        if draft is not None and draft.token is not None and not draft.entry.refresh:
            self._cost += max(cost_at_worst(draft.served, draft.p), 0.0)
            if change.lists:
                self._add(change.view, lists=1)
        if change.clicks and logged.compared:
            before = self._clicks.get(change.view, 0)
            after = self._clicks[change.view] = before + change.clicks
            self._add(change.view, clicks=change.clicks, squares=after**2 - before**2)

    def _add(self, ranking_id: str, **numbers: int) -> None:
        arm = "held_out" if held_out(ranking_id) else "exploring"
        self._unsaved.update({f"{arm} {name}": number for name, number in numbers.items()})

    def _begin(self, now: float) -> None:
        """Begin with nothing on a new day: what was not spent yesterday is gone.

        Each of several servers keeps within the share of the clicks that it took, so all of them
        together do; one that starts begins with nothing, too.
        """
        if now // DAY != self._day:
            self._day, self._cost, self._clicked = now // DAY, 0.0, 0.0

    async def save(self) -> None:
        """Add to the sums of all servers, and stop exploration if they say so."""
        if not self.limited:
            return
        unsaved, self._unsaved = self._unsaved, Counter()
        if unsaved:
            try:
                self._stored = Counter(await self._store.meta.add(GUARD, unsaved))
            except StoreError:
                self._unsaved.update(unsaved)
                raise
        else:
            self._stored = Counter(json.loads(await self._store.meta.get(GUARD) or "{}"))
        if not self.stopped and (self.out().high or 0.0) < 0.0:
            self._stored = Counter(await self._store.meta.add(GUARD, {"stopped": 1}))
            out = self.out()
            log.error(
                "exploration stopped: it costs more than %g %% of clicks (%.4f per list, %.4f "
                "without); `POST /v1/exploration/resume` resumes it",
                100.0 * self._share,
                out.exploring,
                out.held_out,
                extra=about("exploration", stopped=True),
            )

    async def resume(self) -> None:
        """Explore again, and compare from now on."""
        self._unsaved.clear()
        self._stored.clear()
        await self._store.meta.set({GUARD: "{}"})

    def out(self) -> api.BudgetOut:
        """Return what the guard knows; `low` and `high` are of exploring − (1 − share) · others."""
        exploring, others = (_moments(self._stored, arm) for arm in ("exploring", "held_out"))
        gap = difference(exploring, others, factor=1.0 - self._share, alpha=ALPHA, sided=1)
        return api.BudgetOut(
            exploration_budget=self._share,
            stopped=self.stopped,
            spent=self._cost / self._clicked if self._clicked > 0.0 else 0.0,
            lists=int(exploring.weight),
            held_out_lists=int(others.weight),
            exploring=exploring.mean if exploring.weight else 0.0,
            held_out=others.mean if others.weight else 0.0,
            low=gap.low if math.isfinite(gap.low) else None,
            high=gap.high if math.isfinite(gap.high) else None,
        )


def _moments(sums: Mapping[str, int], arm: str) -> Moments:
    lists, clicks, squares = (
        float(sums.get(f"{arm} {name}", 0)) for name in ("lists", "clicks", "squares")
    )
    return Moments(lists, lists, clicks, lists, squares, clicks)


def cost_at_worst(served: Listing, p: Floats) -> float:
    """Return what a list costs at worst, in expected clicks of the order by relevance alone.

    At worst, an item that stands higher than by relevance is worth nothing, and the one it
    displaces is worth more than estimated, by some standard deviations: lists explore just where it
    is underrated. Estimates of new items do not matter then.
    """
    candidates, below = served.candidates, served.offset + len(served.places)
    rank_of = np.empty(len(candidates.rows), np.int64)
    rank_of[candidates.relevance_order] = np.arange(len(rank_of))
    kept = rank_of[served.places] <= np.arange(served.offset, below)
    if kept.all():
        return 0.0
    details, places = candidates.details, candidates.relevance_order[served.offset : below]
    best = details.relevance[places]
    best[~kept] += DEVIATIONS * details.by(details.formulas.spread, places[~kept])
    return float(p[served.offset : below] @ (np.minimum(best, 1.0) - kept * served.relevance))
