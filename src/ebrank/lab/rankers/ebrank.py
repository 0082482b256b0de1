"""Policies in the lab: EBRank (Algorithm 1), Thompson sampling on its posterior, and `auto`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from ebrank.evidence.behaviors import SHOWN
from ebrank.lab.rankers.base import Ranker, ScoreModel, Trial, TrialLearner, param
from ebrank.model.bonus.horizon import lists_ahead
from ebrank.model.policy import policies
from ebrank.model.policy.policies import PRESETS, Policy
from ebrank.model.prior import fitting
from ebrank.model.prior.families.beta import Beta
from ebrank.model.prior.rows import Observations
from ebrank.parameters import Parameter, declared, require
from ebrank.typing import Floats, Ints, State


@dataclass(frozen=True, kw_only=True)
class LabParameters:
    """The lab's own parameter beside the policy; a service learns from all it sees."""

    learn_from: Literal["train", "all"] = param(
        "train",
        "whose clicks teach: those of train queries, or of all but validation queries",
        choices=("train", "all"),
    )


(LEARN_FROM,) = declared(LabParameters)


@dataclass(frozen=True)
class PolicyRanker(LabParameters, Ranker):
    """A ranker that is a policy; it has the policy's parameters, and the lab's own."""

    settings = ("non-concate",)

    policy: Policy

    def __post_init__(self) -> None:
        """Refuse a policy with another name, whose text would be mistaken for this one."""
        named = isinstance(self.policy, Policy) and self.policy.name == self.name
        require(named, f"{type(self).__name__} takes only the policy {self.name!r}")
        LEARN_FROM.check(self.learn_from, self.name)

    def parameters(self) -> Iterator[Parameter]:
        """Yield the policy's parameters, then the lab's own."""
        yield from self.policy.parameters()
        yield LEARN_FROM

    def value(self, name: str) -> Any:  # noqa: ANN401 (of the parameter's type)
        """Return the value of a parameter; None if there is no such parameter."""
        return self.learn_from if name == LEARN_FROM.name else self.policy.values().get(name)

    def with_parameters(self, **changes: Any) -> Self:  # noqa: ANN401 (of any type)
        """Return the same ranker with some parameters changed."""
        learn_from = changes.pop(LEARN_FROM.name, self.learn_from)
        return type(self)(self.policy.with_parameters(**changes), learn_from=learn_from)

    @classmethod
    def from_text(cls, settings: str, called: str) -> Self:
        """Return the ranker for a policy's text, which may also say what it learns from."""
        values = policies.read(cls.name, settings, also=(LEARN_FROM,))
        learn_from = values.pop(LEARN_FROM.name, LEARN_FROM.default)
        return cls(policies.make(cls.name, **values), learn_from=learn_from)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that refits the prior at every update."""
        return PolicyLearner(self.policy, trial, self.learn_from)


@dataclass(frozen=True)
class EBRank(PolicyRanker):
    """The paper's ranker."""

    name = "ebrank"
    help = PRESETS["ebrank"][0]

    policy: Policy = field(default_factory=lambda: policies.make("ebrank"))


@dataclass(frozen=True)
class Thompson(PolicyRanker):
    """EBRank's prior and posterior, with a score drawn from the posterior."""

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
    """Fits the prior on train queries; validation queries decide when to stop, and the ridge.

    With `learn_from="all"`, test queries teach too, as they do in a service.
    """

    policy: Policy
    trial: Trial
    learn_from: Literal["train", "all"] = "train"
    state: State | None = None

    def update(self) -> ScoreModel:
        """Refit, and give every item its prior, unless behavior alone counts."""
        policy, trial = self.policy, self.trial
        if policy.choices.part == "behavior":
            return self._model(np.zeros(trial.dataset.n_rows), np.zeros(1))
        validation = trial.dataset.rows_in("vali")
        self.state = fitting.fit(
            policy.prior,
            self._table(self._lessons()),
            self._table(validation),
            trial.examination,
            self.state,
            trial.threads,
        )
        everything = self._table(slice(None))
        elsewhere = policy.prior.elsewhere(self.state, everything, trial.examination, trial.threads)
        prior = policy.prior.of_items(self.state, trial.dataset.features, trial.threads, elsewhere)
        model = self._model(prior.a, prior.b, self.state.get("weights"))
        return replace(model, prior=prior) if isinstance(policy.family, Beta) else model

    def _lessons(self) -> slice | Ints:
        """Return the training rows, in the order of the dataset."""
        data = self.trial.dataset
        if self.learn_from == "train":
            return data.rows_in("train")
        teaches = np.ones(data.n_rows, np.bool_)
        teaches[data.rows_in("vali")] = False
        return np.flatnonzero(teaches)

    def _table(self, rows: slice | Ints) -> Observations:
        data = self.trial.dataset
        items = data.items
        return Observations(
            data.features[rows],
            self.trial.stats[rows],
            data.query_of_rows[rows],
            None if items is None else items[rows],
        )

    def _model(self, a: Floats, b: Floats, weights: Floats | None = None) -> ScoreModel:
        policy, trial = self.policy, self.trial
        curve = policy.prior.curve(self.state, trial.examination)
        had = float(trial.stats.counts[:, SHOWN, 0].sum()) / trial.dataset.n_queries
        scores = policy.scores(self.state, trial.stats.valuation(curve), lists_ahead(had))
        return ScoreModel(
            a,
            b,
            scores.score,
            scores.relevance,
            noisy=policy.noisy,
            weights=weights,
            examination=curve,
        )
