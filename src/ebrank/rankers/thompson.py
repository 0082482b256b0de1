"""Thompson sampling on EBRank's posterior: explore by drawing instead of by a bonus."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ebrank.rankers.base import Learner, Ranker, Trial, param
from ebrank.rankers.ebrank import EBRank, EBRankLearner
from ebrank.rankers.model import Formula, ScoreModel

DRAW = Formula("ebrank.rankers.kernels.noise:posterior_draw")


@dataclass(frozen=True)
class Thompson(Ranker):
    """EBRank's prior and posterior, with the order drawn from the posterior."""

    name = "thompson"
    help = "Thompson sampling: sort by a draw from EBRank's posterior."
    settings = ("non-concate",)

    beta: float = param(5.0, "β of the prior", at_least=1e-6)

    def learner(self, trial: Trial) -> Learner:
        """Return a learner of EBRank's prior."""
        return ThompsonLearner(EBRankLearner(EBRank(estimator="exposure", beta=self.beta), trial))


@dataclass
class ThompsonLearner:
    """Learns as EBRank does, serves by drawing."""

    posterior: EBRankLearner

    def update(self) -> ScoreModel:
        """Return the posterior to draw from."""
        model = self.posterior.update()
        return replace(model, serve=DRAW, noisy=True)
