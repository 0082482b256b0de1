"""CFEpsilon: learns as CFTopK does, and adds noise to every score to explore."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ebrank.formula import Formula
from ebrank.rankers.base import Ranker, Trial, TrialLearner, param
from ebrank.rankers.counterfactual import CounterfactualLearner, CounterfactualParameters
from ebrank.rankers.least_squares import ClickRate
from ebrank.rankers.model import ScoreModel

NOISY: dict[ClickRate, Formula] = {
    "exposure": Formula("ebrank.rankers.kernels.perturbed:exposure_perturbed", "w", "noise"),
    "ips": Formula("ebrank.rankers.kernels.perturbed:ips_perturbed", "w", "noise"),
}


@dataclass(frozen=True)
class CFEpsilon(CounterfactualParameters, Ranker):
    """Shows the items with the highest w·x + w_b·x^b + noise·U, U uniform on [0, 1)."""

    name = "cfepsilon"
    help = "CFTopK's model, with uniform noise added to each score in each session."
    settings = ("none", "concate")

    noise: float = param(1.0, "largest noise added to a score", at_least=0)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that refits at every update."""
        return EpsilonLearner(CounterfactualLearner(self, trial), self.behavior, self.noise)


@dataclass
class EpsilonLearner:
    """Learns as CFTopK does, serves with noise, and is measured without it."""

    greedy: CounterfactualLearner
    behavior: ClickRate
    noise: float

    def update(self) -> ScoreModel:
        """Return CFTopK's model; without x^b its weight is 0, so one formula fits both."""
        model = self.greedy.update()
        served = NOISY[self.behavior].bind(w=self.greedy.behavior_weight, noise=self.noise)
        return replace(model, serve=served, noisy=True)
