"""Click and stop probabilities by grade, as studies of online learning to rank set them.

A perfect user clicks relevant items and reads on. A navigational user looks for one item and mostly
leaves with it. An informational user clicks a lot and leaves late. The tables for five grades are
from Hofmann, Schuth, Whiteson and de Rijke (Reusing historical interaction data for faster online
learning to rank for IR, WSDM 2013), those for three grades from Schuth, Oosterhuis, Whiteson and de
Rijke (Multileave gradient descent, WSDM 2016). Two grades are the ends of either; any other scale
is interpolated from the table for five.

>>> probabilities("navigational", 2).click
array([0.05, 0.5 , 0.95])
>>> probabilities("navigational", 8).stop
array([0.2 , 0.25, 0.3 , 0.4 , 0.5 , 0.6 , 0.7 , 0.8 , 0.9 ])
"""

from __future__ import annotations

import numpy as np

from ebrank.simulation.users.base import Habits

Table = tuple[tuple[float, ...], tuple[float, ...]]
"""P(click | grade) and P(stop | click, grade), lowest grade first."""

FIVE: dict[str, Table] = {
    "perfect": ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    "navigational": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    "informational": ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
}
THREE: dict[str, Table] = {
    "perfect": ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
    "navigational": ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
    "informational": ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
}


def probabilities(setting: str, max_label: int) -> Habits:
    """Return the probabilities of a setting for the grades 0 to `max_label`."""
    table = THREE[setting] if max_label == 2 else FIVE[setting]
    grades = np.linspace(0.0, 1.0, max_label + 1)
    return Habits(*(np.interp(grades, np.linspace(0.0, 1.0, len(row)), row) for row in table))
