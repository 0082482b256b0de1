"""The paper's protocol, with every number as a parameter."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np

from ebrank.errors import ParameterError
from ebrank.evidence import CLICKS, Behaviors, Examination
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.simulation.protocol import SETTINGS, setting
from ebrank.lab.simulation.users import PBM, UserModel
from ebrank.parameters import require

LARGEST_SESSIONS = 10**10
"""Each takes some 40 bytes until the trial ends, so these would need 400 GB."""


@dataclass(frozen=True)
class SimulationConfig:
    """The paper's simulated cold-start search (Sec. 5.1).

    Attributes:
        entering_probability: η, with which a masked item enters in a session of its query.
        initial_candidates: smallest and largest number of candidates a query starts with.
        warmup_sessions: BM25 sessions per query before serving.
        updates: model updates, evenly spread over the served sessions.
        sessions: served sessions; None for the paper's formula (eq:SimNumSess).
        list_length: items shown.
        discount: γ of Cum-NDCG.
        cutoffs: at which Cold- and Warm-NDCG are measured; the first is the headline.
        labels: `graded` as they are, or `binary`: every label above 0 is 1, the largest.
        traffic: how often queries are asked: `uniform`, or `zipf`, proportional to 1/rank.
        users: how users look and click.
        click_rate: factor of all click probabilities, to simulate low click rates; lists are still
            measured by the relevance itself.
        assumed: the examination curve that rankers debias clicks with; None for the users' own.
        behaviors: what users may do, and what it is worth; clicks alone by default.
    """

    entering_probability: float = setting("eta")
    initial_candidates: tuple[int, int] = (5, 10)
    warmup_sessions: int = setting("warmup")
    updates: int = setting("updates")
    sessions: int | None = setting("sessions")
    list_length: int = setting("list_length")
    discount: float = setting("gamma")
    cutoffs: tuple[int, ...] = (5, 1, 3, 10)
    labels: Literal["graded", "binary"] = setting("labels")
    traffic: Literal["uniform", "zipf"] = setting("traffic")
    users: UserModel = field(default_factory=PBM)
    click_rate: float = setting("click_rate")
    assumed: Examination | None = None
    behaviors: Behaviors = CLICKS

    def __post_init__(self) -> None:
        """Reject an impossible experiment."""
        for own in fields(self):
            if "setting" in own.metadata:
                about = replace(SETTINGS[own.metadata["setting"]], name=own.name)
                about.check(getattr(self, own.name), "the simulation")
        low, high = self.initial_candidates
        require(1 <= low <= high, "initial_candidates must be (smallest, largest), 1 or more")
        require(len(self.cutoffs) > 0 and min(self.cutoffs) >= 1, "cutoffs must be 1 or more")

    def judged(self, dataset: Dataset) -> Dataset:
        """Return a dataset with the labels of this experiment."""
        if self.labels == "graded":
            return dataset
        require(
            dataset.relevance is None,
            f"labels must be graded on {dataset.name}, whose labels stand for its own relevance",
        )
        binary = (dataset.labels > 0).astype(np.int8)
        return replace(dataset, labels=binary, max_label=1, check_values=False)

    def session_count(self, dataset: Dataset) -> int:
        """Return the number of served sessions: ⌊(rows − 5·queries)/η⌋ unless given.

        Every update must be preceded by at least one session.
        """
        count: float | None = self.sessions
        if count is None:
            masked = dataset.n_rows - 5 * dataset.n_queries
            count = max(masked / self.entering_probability, 0)
        if count > LARGEST_SESSIONS:
            raise ParameterError(
                f"more than {LARGEST_SESSIONS:,} sessions do not fit in memory; "
                "set fewer sessions, or a larger entering probability η"
            )
        count = int(count)
        if count < self.updates:
            raise ParameterError(
                f"{count} sessions are too few for {self.updates} model updates; "
                "set more sessions or fewer updates"
            )
        return count
