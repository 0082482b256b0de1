"""What users did with items, kept in whole numbers: the only evidence that rankers learn from.

For each item we count how often it was shown at each rank and how often that led to a click, or to
another behavior. Whole numbers add up exactly, in any order, on any number of machines. Everything
else is derived from them for an examination curve, which may change later: n, c, C, E, and the
exact likelihood of a relevance.
"""

from ebrank.evidence.behaviors import CLICKS, Behavior, Behaviors
from ebrank.evidence.examination import Examination
from ebrank.evidence.stats import BehaviorStats, Sums
from ebrank.evidence.valuation import Valuation

__all__ = [
    "CLICKS",
    "Behavior",
    "BehaviorStats",
    "Behaviors",
    "Examination",
    "Sums",
    "Valuation",
]
