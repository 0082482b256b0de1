"""What is known about an item before users act: from features, by a learner and a family."""

from ebrank.model.prior.base import Family, ItemPrior, Learner, Posterior, State

__all__ = ["Family", "ItemPrior", "Learner", "Posterior", "State"]
