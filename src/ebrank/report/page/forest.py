"""Findings as a forest plot: a row for each claim, its effect and interval on the theme's scale.

Effects of one theme share a scale: each is relative to what it is compared with, so that NDCG and
Cum-NDCG can stand side by side. Positions are in percent of the width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ebrank.experiments.document import DatasetRecord
from ebrank.experiments.framework.outcome import Effect, Finding
from ebrank.experiments.framework.significance import caution
from ebrank.report.findings import SYMBOLS, Theme, tally, themes

MARGIN = 4.0
"""Room at either side of a plot, in percent."""


@dataclass(frozen=True)
class Bar:
    """Where an effect is drawn; None for an unknown interval."""

    value: float
    low: float | None
    high: float | None
    border: float


@dataclass(frozen=True)
class Claim:
    """One row."""

    finding: Finding
    symbol: str
    bar: Bar | None


@dataclass(frozen=True)
class Tick:
    """A mark of the scale."""

    place: float
    label: str


@dataclass(frozen=True)
class ForestTheme:
    """The claims of a theme on one scale."""

    title: str
    tally: str
    claims: Sequence[Claim]
    ticks: Sequence[Tick]


@dataclass(frozen=True)
class Forest:
    """The findings on one dataset."""

    name: str
    tally: str
    themes: Sequence[ForestTheme]
    caution: str = ""


def forest(data: DatasetRecord, trials: int) -> Forest:
    """Return the findings on a dataset, and whether the run is large enough to decide them."""
    return Forest(
        data.name,
        tally(data.findings),
        [_drawn(theme) for theme in themes(data.findings)],
        caution(data.test_queries, trials),
    )


def _drawn(theme: Theme) -> ForestTheme:
    scale = _Scale(*theme.range)
    claims = [
        Claim(
            finding,
            SYMBOLS[finding.verdict],
            None if finding.effect is None else _bar(finding.effect, scale),
        )
        for finding in theme.findings
    ]
    return ForestTheme(theme.title, tally(theme.findings), claims, scale.ticks())


def _bar(effect: Effect, scale: _Scale) -> Bar:
    low, high = (
        None if end is None else scale.place(effect.relative(end))
        for end in (effect.low, effect.high)
    )
    border = scale.place(effect.relative(effect.border))
    return Bar(scale.place(effect.relative(effect.value)), low, high, border)


@dataclass(frozen=True)
class _Scale:
    """Shares, from left to right."""

    low: float
    high: float

    def place(self, share: float) -> float:
        """Return where a share is drawn."""
        span = self.high - self.low
        inside = (share - self.low) / span if span else 0.5
        return round(MARGIN + (100 - 2 * MARGIN) * inside, 2)

    def ticks(self) -> list[Tick]:
        """Return 0, and a round number on each side of it if there is room."""
        shares = [0.0, *(_round(end) for end in (self.low, self.high))]
        places = {self.place(share): _percent(share) for share in shares}
        zero = self.place(0.0)
        return [
            Tick(place, label)
            for place, label in sorted(places.items())
            if place == zero or abs(place - zero) > 15
        ]


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
