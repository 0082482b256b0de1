"""Policies in the lab: EBRank (Algorithm 1), Thompson sampling on its posterior, and `auto`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ebrank import policy as policies
from ebrank.evidence import BehaviorStats
from ebrank.parameters import Parameter, require
from ebrank.policy import PRESETS, Policy
from ebrank.priors.base import State
from ebrank.priors.families.beta import Beta
from ebrank.rankers.base import Ranker, Trial, TrialLearner
from ebrank.rankers.model import ScoreModel
from ebrank.typing import Features, Floats


@dataclass(frozen=True)
class PolicyRanker(Ranker):
    """A ranker that is a policy; its parameters are those of the policy."""

    settings = ("non-concate",)

    policy: Policy

    def __post_init__(self) -> None:
        """Refuse another policy than its own, whose text would be mistaken for it."""
        named = isinstance(self.policy, Policy) and self.policy.name == self.name
        require(named, f"{type(self).__name__} takes a policy called {self.name!r}")

    def parameters(self) -> Iterator[Parameter]:
        """Yield the policy's parameters."""
        return self.policy.parameters()

    def value(self, name: str) -> Any:  # noqa: ANN401 (of the parameter's type)
        """Return the value of a parameter of the policy; None if there is no such parameter."""
        return self.policy.values().get(name)

    def with_parameters(self, **changes: Any) -> Self:  # noqa: ANN401 (of any type)
        """Return the same ranker with some parameters of its policy changed."""
        return type(self)(self.policy.with_parameters(**changes))

    @classmethod
    def from_text(cls, settings: str, called: str) -> Self:
        """Return the ranker of a policy's text."""
        return cls(policies.parse(f"{cls.name}:{settings}"))

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that refits the prior at every update."""
        return PolicyLearner(self.policy, trial)


@dataclass(frozen=True)
class EBRank(PolicyRanker):
    """The paper's ranker."""

    name = "ebrank"
    help = PRESETS["ebrank"][0]

    policy: Policy = field(default_factory=lambda: policies.make("ebrank"))


@dataclass(frozen=True)
class Thompson(PolicyRanker):
    """EBRank's prior and posterior, with the order drawn from the posterior."""

    name = "thompson"
    help = PRESETS["thompson"][0]

    policy: Policy = field(default_factory=lambda: policies.make("thompson"))


@dataclass(frozen=True)
class Auto(PolicyRanker):
    """EBRank without anything to tune."""

    name = "auto"
    help = PRESETS["auto"][0]

    policy: Policy = field(default_factory=lambda: policies.make("auto"))


@dataclass
class PolicyLearner:
    """Fits the prior on train queries; validation queries decide when to stop, and the ridge."""

    policy: Policy
    trial: Trial
    state: State | None = None

    def update(self) -> ScoreModel:
        """Refit, and give every item its prior; behavior alone needs none."""
        policy, trial = self.policy, self.trial
        if policy.choices.part == "behavior":
            return self._model(np.zeros(trial.dataset.n_rows), np.zeros(1))
        self.state = policy.fit(
            self._table("train"), self._table("vali"), trial.examination, self.state, trial.threads
        )
        prior = policy.prior(self.state, trial.dataset.features, trial.threads)
        model = self._model(prior.a, prior.b, self.state.get("weights"))
        return replace(model, prior=prior) if isinstance(policy.family, Beta) else model

    def _table(self, split: str) -> tuple[Features, BehaviorStats]:
        chosen = self.trial.dataset.rows_in(split)
        return self.trial.dataset.features[chosen], self.trial.stats[chosen]

    def _model(self, a: Floats, b: Floats, weights: Floats | None = None) -> ScoreModel:
        policy, trial = self.policy, self.trial
        curve = policy.curve(self.state, trial.examination)
        scores = policy.scores(self.state, trial.stats.valuation(curve), trial.lists)
        return ScoreModel(
            a,
            b,
            scores.score,
            scores.relevance,
            noisy=policy.noisy,
            weights=weights,
            examination=curve,
        )
