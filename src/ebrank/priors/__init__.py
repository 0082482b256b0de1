"""Priors: from features to a Beta distribution of relevance."""

from ebrank.priors.base import BetaParameters, Prior
from ebrank.priors.linear import LinearPrior

__all__ = ["BetaParameters", "LinearPrior", "Prior"]
