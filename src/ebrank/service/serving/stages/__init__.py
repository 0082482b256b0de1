"""The stages of a list, in their order, and the three that every list passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ebrank.service import api
from ebrank.service.core.items import ids_of, reject_withdrawn
from ebrank.service.core.models import Deployment
from ebrank.service.core.problems import Problem, not_candidates
from ebrank.service.core.queries import Pace
from ebrank.service.core.resources import Resources, Watcher
from ebrank.service.serving.lists import Draft, Logged, Stage, scored
from ebrank.service.serving.stages.budget import Budget
from ebrank.service.serving.stages.experiments import Experiments
from ebrank.service.serving.stages.windows import Windows


class Stages:
    """The stages of a list.

    Attributes:
        experiments: whose policy or order makes it.
        windows: whether its user has seen it before.
        budget: whether it may explore.
        in_order: all of them.
    """

    def __init__(self, resources: Resources, watcher: Watcher) -> None:
        self._watcher = watcher
        self._deployment: Deployment | None = None
        self._passed: Sequence[Stage] = ()
        self._noting: Sequence[Stage] = ()
        settings = resources.settings
        self.experiments = Experiments(
            resources.active, settings.insights.new_seconds, watcher.arms
        )
        self.windows = Windows(settings.ranking.window, resources.timer)
        self.budget = Budget(resources.store, resources.meta, settings.ranking.exploration_budget)
        self.in_order: tuple[Stage, ...] = (
            Candidates(),
            self.experiments,  # the arm decides which model scores, and whose window it is
            self.windows,  # the cut resumes what the user has seen of these candidates
            resources.sharing,  # the score needs the evidence of other queries
            Score(resources.pace),
            Cut(),
            self.budget,  # the price of a list is known once it is cut: one too dear is cut again
        )

    def shape(self, draft: Draft) -> None:
        """Shape a list, before it is logged."""
        self._follow(draft.deployment)
        for stage in self._passed:
            stage.shape(draft)

    def logged(self, logged: Logged, deployment: Deployment) -> None:
        """Let the dashboard and the stages take note of a list or an event that is in the log."""
        self._watcher.logged(logged)
        self._follow(deployment)
        for stage in self._noting:
            stage.logged(logged)

    def _follow(self, deployment: Deployment) -> None:
        """Find out which stages are on with a deployment; it rarely changes."""
        if deployment is not self._deployment:
            self._deployment = deployment
            self._passed = [stage for stage in self.in_order if stage.on(deployment)]
            notes = (stage for stage in self._passed if type(stage).logged is not Stage.logged)
            self._noting = [*notes]


class Candidates(Stage):
    """Finds the items of the request, in its order; without any, all candidates compete."""

    columns: ClassVar = ("query", "offset")

    def shape(self, draft: Draft) -> None:
        """Find the rows of the items that the request names."""
        if draft.depth > api.MOST_RANKS:
            raise Problem(f"offset and k must not exceed {api.MOST_RANKS} together", "offset")
        if draft.request.items is None:
            return
        names = ids_of(draft.request.items)
        rows = draft.live.rows_of(names)
        if None in rows:  # they were candidates when the request came, but it may have waited since
            pairs = zip(names, rows, strict=True)
            raise not_candidates([name for name, row in pairs if row is None])
        reject_withdrawn(draft.live, names, rows)
        draft.rows = np.array(rows, np.int64)


class Score(Stage):
    """Scores the candidates: by the policy's score, and by relevance alone."""

    columns: ClassVar = ("model",)

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._draws = np.random.PCG64()

    def shape(self, draft: Draft) -> None:
        """Score the candidates."""
        draft.candidates = scored(
            draft.live,
            draft.model,
            draft.rows,
            draws=self._draws,
            lists=self._pace.planned(draft.live, draft.model, draft.entry.time),
            elsewhere=draft.elsewhere,
        )


class Cut(Stage):
    """Cuts the list from the order by score, or by relevance if nothing is to be explored."""

    columns: ClassVar = ("items", "explored", "relevance", "cost")

    def shape(self, draft: Draft) -> None:
        """Cut the list."""
        draft.cut()
