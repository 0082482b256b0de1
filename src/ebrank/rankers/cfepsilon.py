"""CFEpsilon: learns as CFTopK does, and adds noise to every score to explore."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ebrank.behavior import Estimator
from ebrank.rankers.base import Learner, Ranker, Trial, param
from ebrank.rankers.counterfactual import CounterfactualLearner, CounterfactualParameters
from ebrank.rankers.model import Formula, ScoreModel

NOISY: dict[Estimator, Formula] = {
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

    def learner(self, trial: Trial) -> Learner:
        """Return a learner that refits at every update."""
        return EpsilonLearner(CounterfactualLearner(self, trial), self.behavior, self.noise)


@dataclass
class EpsilonLearner:
    """Learns as CFTopK does, serves with noise, is measured without."""

    greedy: CounterfactualLearner
    behavior: Estimator
    noise: float

    def update(self) -> ScoreModel:
        """Return CFTopK's model; without x^b its weight is 0, so that one formula serves both."""
        model = self.greedy.update()
        return replace(
            model,
            serve=NOISY[self.behavior],
            serve_parameters=(model.serve_parameters[0], float(self.noise), 0.0),
            noisy=True,
        )
