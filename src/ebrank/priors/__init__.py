"""What is known of an item before users speak: from features, by a learner and a family."""

from ebrank.priors.base import Family, ItemPrior, Learner, Posterior, State

__all__ = ["Family", "ItemPrior", "Learner", "Posterior", "State"]
