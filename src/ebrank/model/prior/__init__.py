"""What is known about an item before users act: from features, by a learner and a family."""

from ebrank.model.formula import ItemPrior
from ebrank.model.prior.base import Family, Learner, Posterior
from ebrank.typing import State

__all__ = ["Family", "ItemPrior", "Learner", "Posterior", "State"]
