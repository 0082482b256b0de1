"""Scales of the page's own plots, which show findings as a forest plot.

Effects of one theme share a scale: each is relative to what it is compared with, so that NDCG and
Cum-NDCG can stand side by side. Positions are in percent of the width; the templates draw them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ebrank.report.ledger import Theme

MARGIN = 5.0
"""Margin at either side of a plot, in percent."""


@dataclass(frozen=True)
class Scale:
    """Values from left to right.

    >>> Scale(0.0, 1.0).place(0.5), Scale(3.0, 3.0).place(3.0)
    (50.0, 50.0)
    """

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return where a value is drawn."""
        span = self.high - self.low
        inside = (value - self.low) / span if span else 0.5
        return round(MARGIN + (100 - 2 * MARGIN) * inside, 2)

    def ticks(self) -> list[tuple[float, str]]:
        """Return 0, and a round share on each side of it if there is room, with their places."""
        shares = [0.0, *(_round(end) for end in (self.low, self.high))]
        labels = {self.place(share): _percent(share) for share in shares}
        zero = self.place(0.0)
        return [
            (place, label)
            for place, label in sorted(labels.items())
            if place == zero or abs(place - zero) > 15
        ]


def theme_scale(theme: Theme) -> Scale:
    """Return the scale of a theme's shares: all intervals and 0."""
    ends = [0.0]
    for effect in (finding.effect for finding in theme.findings):
        if effect is not None:
            values = (effect.value, effect.low, effect.high, effect.border)
            ends += [effect.relative(value) for value in values if value is not None]
    return Scale(min(ends), max(ends))


def _round(share: float) -> float:
    """Return the number rounded towards 0 to one of 1, 2, 5, 10, 20, …

    >>> _round(0.34), _round(-0.007), _round(0.0)
    (0.2, -0.005, 0.0)
    """
    if not share:
        return 0.0
    power = 10.0 ** math.floor(math.log10(abs(share)))
    first = next(digit for digit in (5, 2, 1) if digit * power <= abs(share) * (1 + 1e-9))
    return math.copysign(first * power, share)


def _percent(share: float) -> str:
    """Return a share in percent.

    >>> _percent(0.2), _percent(-0.005), _percent(0.0)
    ('+20 %', '−0.5 %', '0')
    """
    if not share:
        return "0"
    return f"{'+' if share > 0 else '−'}{abs(100 * share):g} %"
