"""The scores of a policy that has learned nothing yet."""

from __future__ import annotations

from ebrank import Examination, Policy
from ebrank.evidence import Valuation
from ebrank.evidence.slots import SLOTS
from ebrank.model.policy.composition import Scores


def unfitted(
    policy: Policy, curve: Examination | None = None, *, slots: int = SLOTS, lists: float = 100.0
) -> Scores:
    """Return how the policy scores items before any fit."""
    return policy.scores(None, Valuation.of(curve or Examination(), slots=slots), lists)
