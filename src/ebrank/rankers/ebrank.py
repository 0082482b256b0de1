"""EBRank (Algorithm 1): posterior relevance by empirical Bayes, plus marginal certainty."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ebrank.behavior import Estimator
from ebrank.equations import marginal_certainty, ranking_score, relevance
from ebrank.priors import LinearPrior
from ebrank.rankers.base import Learner, Ranker, Trial, param
from ebrank.rankers.model import Formula, ScoreModel


def ips_score(
    a: float, b: float, shown: float, weighted_clicks: float, exposure: float, epsilon: float
) -> float:
    """Return R̂ + ε·MC with R̂ = (C + α)/(n + α + β)."""
    estimate = relevance(weighted_clicks, shown, a, b)
    return ranking_score(estimate, marginal_certainty(estimate, exposure, a, b), epsilon)


def exposure_score(a: float, b: float, clicks: float, exposure: float, epsilon: float) -> float:
    """Return R̂ + ε·MC with R̂ = (c + α)/(E + α + β)."""
    estimate = relevance(clicks, exposure, a, b)
    return ranking_score(estimate, marginal_certainty(estimate, exposure, a, b), epsilon)


def prior_score(a: float, b: float) -> float:
    """Return α/(α + β), what the features alone promise."""
    return a / (a + b)


def ips_behavior_score(shown: float, weighted_clicks: float) -> float:
    """Return C/n, what users alone say; 0 for what nobody has seen."""
    return weighted_clicks / max(shown, 1.0)


def exposure_behavior_score(clicks: float, exposure: float) -> float:
    """Return c/E, what users alone say; 0 for what nobody has seen."""
    return clicks / exposure if exposure > 0.0 else 0.0


FORMULAS = {
    ("both", "ips"): Formula(ips_score, "epsilon"),
    ("both", "exposure"): Formula(exposure_score, "epsilon"),
    ("prior", "ips"): Formula(prior_score),
    ("prior", "exposure"): Formula(prior_score),
    ("behavior", "ips"): Formula(ips_behavior_score),
    ("behavior", "exposure"): Formula(exposure_behavior_score),
}


@dataclass(frozen=True)
class EBRank(Ranker):
    """The paper's ranker."""

    name = "ebrank"
    help = "Posterior relevance from an empirical Bayes prior, plus a bonus for marginal certainty."
    settings = ("non-concate",)

    epsilon: float = param(
        20.0,
        "weight of the exploration bonus",
        at_least=0,
        grid=(0.0, 5.0, 10.0, 20.0, 30.0, 50.0, 70.0, 100.0),
    )
    estimator: Estimator = param(
        "ips", "evidence: C of n (ips) or c of E (exposure)", choices=("ips", "exposure")
    )
    part: Literal["both", "prior", "behavior"] = param(
        "both",
        "ablation: rank by the prior's or by behavior's part of the estimate alone, unexplored",
        choices=("both", "prior", "behavior"),
    )
    beta: float = param(5.0, "β of the prior", at_least=1e-6)
    l2: float = param(1e-6, "penalty on the prior's weights", at_least=0)
    min_impressions: int = param(0, "train on rows shown more often than this", at_least=0)
    clamp: bool = param(False, "limit debiased clicks to the trials when training")
    early_stopping: bool = param(True, "let the validation loss decide when to stop")

    def learner(self, trial: Trial) -> Learner:
        """Return a learner that refits the prior at every update."""
        return EBRankLearner(self, trial)


@dataclass
class EBRankLearner:
    """Fits the prior on train queries; validation queries decide when to stop."""

    ranker: EBRank
    trial: Trial
    prior: LinearPrior = field(init=False)

    def __post_init__(self) -> None:
        """Set the prior up, to be refitted from where it was."""
        self.prior = LinearPrior(
            self.ranker.beta,
            estimator=self.ranker.estimator,
            l2=self.ranker.l2,
            min_impressions=self.ranker.min_impressions,
            clamp=self.ranker.clamp,
            early_stopping=self.ranker.early_stopping,
            warm_start=True,
            threads=self.trial.threads,
        )

    def update(self) -> ScoreModel:
        """Refit, and give every item its α and β; behavior alone needs neither."""
        data, stats = self.trial.dataset, self.trial.stats
        formula = FORMULAS[self.ranker.part, self.ranker.estimator]
        if self.ranker.part == "behavior":
            return ScoreModel(np.zeros(data.n_rows), np.zeros(1), serve=formula, offline=formula)
        train, vali = data.rows_in("train"), data.rows_in("vali")
        self.prior.fit(
            data.features[train], stats[train], validation=(data.features[vali], stats[vali])
        )
        prior = self.prior.predict(data.features)
        return ScoreModel(
            a=prior.alpha,
            b=prior.beta[:1],  # the same for all
            serve=formula,
            offline=formula,
            serve_parameters=(float(self.ranker.epsilon), 0.0, 0.0),
            weights=self.prior.weights_,
            prior=prior,
        )
