"""The stages of a list, in their order; most are off unless a setting or an experiment asks."""

from __future__ import annotations

from ebrank.service.core.resources import Resources, Watcher
from ebrank.service.serving.draft import Draft, Logged, Stage
from ebrank.service.serving.stages.basics import Candidates, Cut, Score
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
        settings = resources.settings
        self.experiments = Experiments(
            resources.active, settings.insights.new_seconds, watcher.arms
        )
        self.windows = Windows(settings.ranking.window, resources.timer)
        self.budget = Budget(resources.store, resources.meta, settings.ranking.max_cost)
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
        for stage in self.in_order:
            if stage.on:
                stage.shape(draft)

    def note(self, logged: Logged) -> None:
        """Let all who follow it take note of a list or an event that is in the log."""
        self._watcher.logged(logged)
        for stage in self.in_order:
            if stage.on:
                stage.logged(logged)
