"""Simulated users: what they look at and what they do.

`base.py` says what a user model is, `models.py` has those that the command line knows by name, and
`settings.py` the click and stop probabilities of the online learning-to-rank literature.
"""

from ebrank.simulation.users.base import (
    BROWSE,
    Habits,
    PositionBased,
    UserModel,
    habits_of,
    position_based,
    relevance_of,
)
from ebrank.simulation.users.models import Users, known, parse

__all__ = [
    "BROWSE",
    "Habits",
    "PositionBased",
    "UserModel",
    "Users",
    "habits_of",
    "known",
    "parse",
    "position_based",
    "relevance_of",
]
