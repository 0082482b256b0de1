"""Experiments: the arm of a list makes its order, and its clicks count for the arm.

The arm `own` serves the caller's own order, a control group whose clicks count.
"""

from __future__ import annotations

from typing import ClassVar

from ebrank.service.core.background import Unsaved
from ebrank.service.core.experiments import OWN, ArmCell, parted
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.models import ActiveModel, Deployment
from ebrank.service.serving.lists import Draft, Logged, Stage
from ebrank.service.store.counting import Change


class Experiments(Stage):
    """Assigns lists to the arms of the running experiment, and counts what they do."""

    columns: ClassVar = ("arm",)

    def __init__(self, active: ActiveModel, new_seconds: float, sums: Unsaved[ArmCell]) -> None:
        self._active, self._new_seconds, self._sums = active, new_seconds, sums

    def on(self, deployment: Deployment) -> bool:
        """Return whether an experiment runs, with arms that can make lists."""
        return deployment.assigner is not None

    def shape(self, draft: Draft) -> None:
        """Let the arm of a list rank it."""
        assigner = draft.deployment.assigner
        if assigner is None:
            return
        arm = assigner.assigned(draft.request, draft.entry.query, draft.entry.user)
        if arm is not None:
            draft.arm, draft.model = arm, draft.deployment.arms[arm.arm]
            draft.callers = arm.policy == OWN
            draft.entry.arm, draft.entry.cell = arm.label, arm.cell

    def logged(self, logged: Logged) -> None:
        """Add to the sums of an arm; pages that continue a list are part of it."""
        change, entry = logged.change, logged.change.entry
        assigner = self._active.deployment.assigner
        if entry.arm is not None and assigner is not None and assigner.runs(entry.arm):
            experiment, arm, stretch = parted(entry.arm)
            self._sums.add(
                (experiment, stretch, arm, entry.cell),
                lists=change.lists,
                clicks=change.clicks,
                outcome=change.worth,
                found=change.clicks > 0 and self._first_click(logged.live, change),
            )

    def _first_click(self, live: LiveQuery, change: Change) -> bool:
        """Return whether a click is the first on a new item."""
        [row] = change.rows
        new = live.state.entered[row] > change.time - self._new_seconds
        return bool(new and not live.counts[row, 1:].any())
